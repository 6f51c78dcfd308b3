"""Starting the cluster's daemons, watching them while others wait for them, and ending every process of a cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from dev.cluster import cgroups
from dev.cluster.errors import ClusterError
from dev.cluster.plan import Cluster

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
POLL_SECONDS = 0.1
TAIL_LINES = 15
# containerd writes its image store; everything else may be killed outright, its state goes anyway.
GRACE_SECONDS = 3.0
KILL_SECONDS = 30.0


class Daemons:
    """The daemons of one `up`. `entrance` is the cgroup.procs file that a process writes itself into."""

    def __init__(self, cluster: Cluster, entrance: Path) -> None:
        self._cluster = cluster
        self._entrance = entrance
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, argv: Sequence[str | Path], path: Sequence[Path] = ()) -> int:
        """Start a daemon with its output in `<name>.log` and `path` in front of PATH; returns its process id."""
        enter = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self._entrance)]
        environment = {"PATH": ":".join([*map(str, path), SYSTEM_PATH]), "HOME": "/root", "LC_ALL": "C.UTF-8"}
        with log_of(self._cluster, name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*enter, *map(str, argv)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        return self._running[name].pid

    def wait_until(self, what: str, holds: Callable[[], bool], seconds: float, culprit: str) -> None:
        """Wait for a condition; ClusterError if a daemon ends before, or after `seconds`.

        `culprit` is the daemon whose log most likely tells why it took too long.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise ClusterError(f"{name} ended with {process.returncode} before {what}; {self._end_of(name)}")
            if time.monotonic() > deadline:
                raise ClusterError(f"{seconds:.0f} s were not enough until {what}; {self._end_of(culprit)}")
            time.sleep(POLL_SECONDS)

    def _end_of(self, name: str) -> str:
        """The last lines of a daemon's log, and where to read on."""
        log = log_of(self._cluster, name)
        lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log.exists() else []
        return "\n  ".join([f"the end of {log}:", *lines, "The other logs of this start are beside it."])


def complete(cluster: Cluster) -> bool:
    """Whether every daemon of the cluster runs."""
    running = Counter(_name(pid) for pid in cgroups.members(cluster))
    return all(running[name] >= count for name, count in expected(cluster.node_count).items())


def expected(node_count: int) -> dict[str, int]:
    """How many daemons there are of each name; the kernel keeps 15 characters of it."""
    once = ("server", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
    return {name[:15]: 1 for name in once} | {"containerd": node_count, "kubelet": node_count}


def log_of(cluster: Cluster, name: str) -> Path:
    return cluster.logs / f"{name}.log"


def end_all(cluster: Cluster) -> None:
    """End every process of the cluster: containerd gently, then all that is left."""
    send([pid for pid in cgroups.members(cluster) if _name(pid) == "containerd"], signal.SIGTERM)
    gentle = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < gentle and any(_name(pid) == "containerd" for pid in cgroups.members(cluster)):
        time.sleep(POLL_SECONDS)
    deadline = time.monotonic() + KILL_SECONDS
    while left := cgroups.members(cluster):
        if time.monotonic() > deadline:
            named = ", ".join(f"{pid} ({_name(pid)})" for pid in left)
            raise ClusterError(f"processes of the cluster do not end: {named}. See `ps -o pid,stat,wchan,args`")
        send(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may be gone already."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
