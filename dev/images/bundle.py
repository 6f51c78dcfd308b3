"""The OCI runtime configuration of a container that is confined as the operator's pods are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dev.images.errors import ImageError

# Read-write, without set-uid programs or devices.
WRITABLE = ["nosuid", "nodev"]
NO_PROGRAMS = [*WRITABLE, "noexec"]


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine inside the container; a writable one must be so for the image's user."""

    source: Path
    target: str
    writable: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `SOURCE:TARGET` or `SOURCE:TARGET:rw`."""
        source, _, rest = text.partition(":")
        target, _, mode = rest.partition(":")
        if not source or not target.startswith("/") or mode not in {"", "ro", "rw"}:
            raise ImageError(f"a mount is SOURCE:TARGET or SOURCE:TARGET:rw with an absolute target; found {text!r}")
        return cls(Path(source).resolve(), target, mode == "rw")

    def options(self) -> list[str]:
        return ["rbind", *WRITABLE, "rw" if self.writable else "ro"]


def numeric_user(user: str) -> tuple[int, int]:
    """The uid and gid of an image's `USER`, which has to be numeric for Kubernetes to see that it is not root."""
    uid, _, gid = user.partition(":")
    if not (uid.isdecimal() and gid.isdecimal()):
        raise ImageError(f"the image's USER is {user!r}; expected UID:GID in numbers")
    return int(uid), int(gid)


def merged_env(image_env: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The image's environment with `env` laid over it."""
    merged = dict(word.split("=", maxsplit=1) for word in image_env) | dict(env)
    return [f"{name}={value}" for name, value in merged.items()]


def runtime_config(
    *,
    name: str,
    arguments: Sequence[str],
    user: tuple[int, int],
    env: Sequence[str],
    mounts: Sequence[Mount],
    terminal: bool = False,
) -> dict[str, Any]:
    """config.json of a bundle whose root file system is the folder `rootfs` beside it.

    Read-only root, no capabilities, no new privileges, a network of its own without a way out, an empty /tmp.
    """
    uid, gid = user
    nothing: list[str] = []
    return {
        "ociVersion": "1.0.2",
        "hostname": "cosyvoice",
        "root": {"path": "rootfs", "readonly": True},
        "process": {
            "terminal": terminal,
            "user": {"uid": uid, "gid": gid},
            "args": list(arguments),
            "env": list(env),
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "inheritable", "permitted"), nothing),
            "noNewPrivileges": True,
        },
        "mounts": [*_system_mounts(), *(_bind(mount) for mount in mounts)],
        "linux": {
            "cgroupsPath": f"/{name}",
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    }


def _bind(mount: Mount) -> dict[str, Any]:
    return {"type": "bind", "source": str(mount.source), "destination": mount.target, "options": mount.options()}


def _system_mounts() -> list[dict[str, Any]]:
    def of(kind: str, destination: str, options: list[str]) -> dict[str, Any]:
        return {"type": kind, "source": kind, "destination": destination, "options": options}

    return [
        of("proc", "/proc", NO_PROGRAMS),
        of("tmpfs", "/dev", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
        of("devpts", "/dev/pts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
        of("tmpfs", "/dev/shm", [*NO_PROGRAMS, "mode=1777"]),
        of("mqueue", "/dev/mqueue", NO_PROGRAMS),
        of("sysfs", "/sys", [*NO_PROGRAMS, "ro"]),
        of("cgroup", "/sys/fs/cgroup", [*NO_PROGRAMS, "relatime", "ro"]),
        of("tmpfs", "/tmp", [*WRITABLE, "mode=1777"]),
    ]
