"""What the clusters change on the machine itself, and how it was before.

The kubelet sets kernel parameters that no namespace holds. They are recorded before the first cluster starts and put
back after the last one has gone; the same for cgroup controllers, and the directories that nodes need as mount points.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from dev.cluster import cgroups

RECORD = "machine.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SYSCTLS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
MOUNT_POINTS = (Path("/var/lib/cni"), Path("/var/lib/kubelet"))


def record(state_root: Path) -> None:
    """Note the machine's state unless it is noted already, and make the mount points."""
    noted = _read(state_root)
    if noted is None:
        sysctls = {name: _sysctl(name).read_text().strip() for name in SYSCTLS if _sysctl(name).exists()}
        made = [str(path) for path in MOUNT_POINTS if not path.exists()]
        noted = {
            "boot": BOOT_ID.read_text().strip(),
            "sysctls": sysctls,
            "directories": made,
            "controllers": cgroups.enabled_controllers(),
        }
        (state_root / RECORD).write_text(json.dumps(noted, indent=1))
    for path in MOUNT_POINTS:
        path.mkdir(parents=True, exist_ok=True)


def restore(state_root: Path) -> None:
    """Put the machine back as it was noted; call it after the last cluster has gone."""
    noted = _read(state_root)
    if noted is not None:
        for name, value in noted["sysctls"].items():
            if _sysctl(name).read_text().strip() != value:
                _sysctl(name).write_text(value)
        cgroups.keep_controllers(noted["controllers"])
        for directory in noted["directories"]:
            with contextlib.suppress(OSError):  # something of the user's own is in it by now
                Path(directory).rmdir()
    (state_root / RECORD).unlink(missing_ok=True)


def _read(state_root: Path) -> dict[str, Any] | None:
    """The record, or None if there is none of this boot: a reboot has undone everything."""
    try:
        noted: dict[str, Any] = json.loads((state_root / RECORD).read_text())
    except FileNotFoundError:
        return None
    return noted if noted["boot"] == BOOT_ID.read_text().strip() else None


def _sysctl(name: str) -> Path:
    return Path("/proc/sys") / name
