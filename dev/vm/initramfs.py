"""What the kernel finds at its start: busybox, a few modules, and the script that goes over to the shared root.

The format is cpio's "newc": Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import gzip
import stat
from collections.abc import Iterator
from pathlib import Path

from dev.vm.kernel import Kernel

BUSYBOX = Path("/bin/busybox")
MODULES = ("virtio_pci", "9pnet_virtio", "9p")
DIRECTORIES = ("bin", "dev", "proc", "root", "modules")
ROOT_TAG, OUT_TAG = "root", "out"
OUT = "/run/out"  # where the machine writes what is to be seen outside

# The root has /proc, /sys and the like of the machine around it: each is covered by one of our own.
INIT = """#!/bin/busybox sh
set -e
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
for module in {modules}; do /bin/busybox insmod /modules/$module; done
options=trans=virtio,version=9p2000.L,msize=524288
/bin/busybox mount -t 9p -o ro,cache=loose,$options {root} /root
/bin/busybox mount --move /dev /root/dev
/bin/busybox mount --move /proc /root/proc
/bin/busybox mount -t sysfs sys /root/sys
/bin/busybox mount -t cgroup2 cgroup /root/sys/fs/cgroup
/bin/busybox mount -t tmpfs run /root/run
/bin/busybox mkdir -p /root/run/tmp /root/run/home /root{out}
/bin/busybox mount -t 9p -o $options {out_tag} /root{out}
/bin/busybox ip link set lo up
export HOME=/run/home TMPDIR=/run/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PYTHONDONTWRITEBYTECODE=1
/bin/busybox chroot /root /bin/sh {out}/command || :
/bin/busybox poweroff -f
"""


def build(kernel: Kernel) -> bytes:
    """The compressed archive."""
    modules = kernel.with_dependencies(*MODULES)
    names = " ".join(file.name for file in modules)
    script = INIT.format(modules=names, root=ROOT_TAG, out_tag=OUT_TAG, out=OUT)
    return gzip.compress(b"".join(_archive(script.encode(), modules)), compresslevel=1)


def _archive(script: bytes, modules: tuple[Path, ...]) -> Iterator[bytes]:
    for name in DIRECTORIES:
        yield _entry(name, stat.S_IFDIR | 0o755, b"")
    yield _entry("bin/busybox", stat.S_IFREG | 0o755, BUSYBOX.read_bytes())
    for file in modules:
        yield _entry(f"modules/{file.name}", stat.S_IFREG | 0o644, file.read_bytes())
    yield _entry("init", stat.S_IFREG | 0o755, script)
    yield _entry("TRAILER!!!", 0, b"")


def _entry(name: str, mode: int, content: bytes) -> bytes:
    """A header of 13 numbers in eight hex digits, the name, the content; each padded to four bytes."""
    encoded = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + "".join(f"{number:08x}" for number in numbers).encode() + encoded
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
