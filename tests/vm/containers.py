"""containerd in the machine, and the worker container as a kubelet's runtime would make it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dev.waiting import wait_for

CGROUPS = Path("/sys/fs/cgroup")
SCRATCH = Path("/run/trial")
ROOTFS = Path("/run/rootfs")
USER = 10001  # as the worker image's


class Containerd:
    """`folder` has its binaries; runc is the system's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._address = "/run/containerd.sock"
        self._environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        config = SCRATCH / "containerd.toml"
        config.write_text(
            'version = 3\nroot = "/run/containerd-root"\nstate = "/run/containerd-state"\n'
            'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", '
            '"io.containerd.cri.v1.runtime"]\n'
            f'[grpc]\naddress = "{self._address}"\n'
        )
        ROOTFS.mkdir()
        subprocess.run(["/bin/busybox", "mount", "--bind", "/", str(ROOTFS)], check=True)
        log = (SCRATCH / "containerd.log").open("wb")
        subprocess.Popen([folder / "containerd", "--config", config], stdout=log, stderr=log, env=self._environment)
        wait_for("containerd's socket", Path(self._address).exists)

    def run(self, identifier: str, spec: Mapping[str, Any]) -> None:
        """Start a container."""
        path = SCRATCH / f"{identifier}.json"
        path.write_text(json.dumps(spec))
        log = f"file://{SCRATCH}/{identifier}.log"
        self._ctr("run", "--detach", "--log-uri", log, "--config", str(path), identifier)

    def states(self) -> str:
        """What runs."""
        return self._ctr("tasks", "list")

    def end(self, identifier: str) -> None:
        """Kill and forget a container."""
        self._ctr("tasks", "delete", "--force", identifier)
        self._ctr("containers", "delete", identifier)

    def _ctr(self, *words: str) -> str:
        command = [self._folder / "ctr", "--address", self._address, *words]
        done = subprocess.run(command, env=self._environment, text=True, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(
                f"ctr {' '.join(words)}: {done.stderr}\n{(SCRATCH / 'containerd.log').read_text()[-2000:]}"
            )
        return done.stdout


def container(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cgroup: str,
    *,
    user: int = USER,
    mounts: Sequence[Mapping[str, Any]] = (),
    writable_cgroup: bool = False,
    memory: int | None = None,
) -> dict[str, Any]:
    """An OCI runtime specification like that of a pod's container: its own namespaces, no capabilities, oom.group.

    `writable_cgroup` is what containerd's `cgroup_writable` makes of it; the cgroup's files then are given to `user`,
    as runc does it where systemd drives the cgroups, and here a hook, since there is no systemd. It reads files as
    root could, because the machine's root is that of whoever runs the tests; it has no other capability.
    """
    access = "rw" if writable_cgroup else "ro"
    reading = ["CAP_DAC_READ_SEARCH"]
    give = f"cd {CGROUPS}{cgroup} && chown {user} . $(ls -d $(cat /sys/kernel/cgroup/delegate) 2>/dev/null)"
    return {
        "ociVersion": "1.1.0",
        "root": {"path": str(ROOTFS), "readonly": True},
        "process": {
            "args": [sys.executable, *arguments],
            "cwd": "/",
            "env": [f"{name}={value}" for name, value in environment.items()],
            "user": {"uid": user, "gid": user},
            "noNewPrivileges": True,
            "capabilities": dict.fromkeys(("bounding", "effective", "inheritable", "permitted", "ambient"), reading),
        },
        "mounts": [
            _mount("/proc", "proc", "proc"),
            _mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755"),
            _mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
            _mount("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", access),
            _mount("/run", "tmpfs", "tmpfs"),
            {"destination": str(SCRATCH), "type": "bind", "source": str(SCRATCH), "options": ["rbind", "rw"]},
            *mounts,
        ],
        "hooks": {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", give]}] if writable_cgroup else []},
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [{"type": name} for name in ("pid", "ipc", "mount", "cgroup")],
            "resources": {
                "memory": {} if memory is None else {"limit": memory},
                "unified": {"memory.oom.group": "1"},
            },
        },
    }  # fmt: skip


def _mount(destination: str, kind: str, source: str, *options: str) -> dict[str, Any]:
    return {"destination": destination, "type": kind, "source": source, "options": list(options)}
