"""Runs a command in a machine and waits for its end."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.cluster.errors import ClusterError
from dev.vm import initramfs
from dev.vm.kernel import find_kernel

QEMU = "qemu-system-x86_64"
CONSOLE = "console.log"
CORES = 2
# Ends with whoever started it, however that ends.
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


def run_in_machine(
    argv: Sequence[str | Path],
    out: Path,
    *,
    cache: Path,
    env: Mapping[str, str] | None = None,
    memory_mib: int = 2048,
    seconds: float = 300,
) -> str:
    """Run `argv` as root in a machine of its own; what it writes to /run/out is in the directory `out` afterwards.

    Returns what the command said. Raises ClusterError, with the end of the console, where the machine does not start or
    `argv` does not end with 0 within `seconds`.
    """
    if shutil.which(QEMU) is None:
        raise ClusterError(f"{QEMU} is not installed: dev/packages.sh install")
    kernel = find_kernel(cache)
    words = shlex.join(str(word) for word in argv)
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in (env or {}).items())
    script = f"cd /\n{settings} {words} >{initramfs.OUT}/said 2>&1\necho $? >{initramfs.OUT}/code\n"
    (out / "command").write_text(script, encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="cosyvoice-vm-") as scratch:
        archive = Path(scratch, "initramfs")
        archive.write_bytes(initramfs.build(kernel))
        command = [*DIE_WITH_PARENT, *_qemu(kernel.image, archive, out, memory_mib)]
        try:
            with (out / CONSOLE).open("wb") as console:
                subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, timeout=seconds, check=True
                )
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"`{words}` did not end in the machine within {seconds:g} s\n{_tail(out)}") from error
        except subprocess.CalledProcessError as error:
            raise ClusterError(f"the machine ended with {error.returncode}\n{_tail(out)}") from error
    code = _read(out / "code").strip()
    if code != "0":
        raise ClusterError(f"`{words}` ended with {code or 'the machine'}\n{_tail(out)}")
    return _read(out / "said")


def _qemu(image: Path, archive: Path, out: Path, memory_mib: int) -> list[str | Path]:
    def share(name: str, path: str | Path, options: str) -> list[str]:
        device = f"virtio-9p-pci,fsdev={name},mount_tag={name}"
        return ["-fsdev", f"local,id={name},path={path},security_model=none{options}", "-device", device]

    return [
        QEMU, "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(CORES), "-m", str(memory_mib),
        "-kernel", image, "-initrd", archive, "-append", "console=ttyS0 quiet panic=-1 oops=panic",
        *share(initramfs.ROOT_TAG, "/", ",readonly=on,multidevs=remap"),
        *share(initramfs.OUT_TAG, out, ""),
    ]  # fmt: skip


def _tail(out: Path) -> str:
    said, console = _read(out / "said"), _read(out / CONSOLE)
    return f"it said:\n{said[-6000:]}\nits console:\n{console[-3000:]}"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
