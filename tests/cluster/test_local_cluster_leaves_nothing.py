"""A cluster that goes leaves the machine as it was: taken down, failed half-way, or killed without a word.

The cluster here is one of its own, with a state directory of its own, beside whichever others there are.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dev.cluster import archive, build, cgroups, host, images, processes, registry
from dev.cluster.kubectl import apply, get
from dev.cluster.modules import KUBERNETES, MODULES
from dev.cluster.plan import Cluster
from dev.waiting import wait_for

NAME = "leaving"
STATE = Path("/var/lib/cosyvoice-operator-test")
CACHE = registry.default_cache()
# Where Kubernetes and its companions like to make directories.
FOLDERS = ("/etc", "/opt", "/run", "/usr/libexec", "/var/lib", "/var/log", STATE)


@dataclass(frozen=True)
class Machine:
    """What a cluster touches, as far as it can be seen from outside."""

    mounts: frozenset[str]
    links: frozenset[str]
    addresses: frozenset[str]
    routes: frozenset[str]
    nft_tables: frozenset[str]
    cgroups: frozenset[str]
    processes: frozenset[str]
    sysctls: frozenset[str]
    files: frozenset[str]


def look() -> Machine:
    """The machine now, image builds left out."""
    mounts = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    roots = cgroups.hierarchies().roots
    return Machine(
        mounts=frozenset(one for one in mounts if "/image-build/" not in one),
        links=frozenset(path.name for path in Path("/sys/class/net").iterdir()),
        addresses=_lines("ip", "-oneline", "address"),
        routes=_lines("ip", "route"),
        nft_tables=_lines("nft", "list", "tables"),
        cgroups=frozenset(str(path) for root in roots for path in root.glob(f"*-{NAME}")),
        processes=frozenset(_processes_of(f"{STATE}/{NAME}/")),
        sysctls=frozenset(
            f"{name}={Path('/proc/sys', name).read_text()}" for name in (*host.SYSCTLS, "net/ipv4/ip_forward")
        ),
        files=frozenset(str(path) for folder in FOLDERS for path in Path(folder).iterdir()),
    )


@pytest.fixture
def own_setting() -> Iterator[None]:
    """A kernel parameter that somebody set, and that the kubelet sets otherwise."""
    parameter = Path("/proc/sys/kernel/panic")
    original = parameter.read_text()
    parameter.write_text("7")
    yield
    parameter.write_text(original)


@pytest.fixture
def before(own_setting: None) -> Iterator[Machine]:
    cluster("down", "--purge")
    yield look()
    cluster("down", "--purge")
    shutil.rmtree(STATE)


@pytest.fixture
def broken_cache(tmp_path: Path) -> Path:
    """A cache whose kubelet ends at once."""
    for module in MODULES:
        folder = build.folder(module, tmp_path)
        folder.mkdir(parents=True)
        for binary in module.binaries:
            (folder / binary).symlink_to(build.folder(module, CACHE) / binary)
    kubelet = build.folder(KUBERNETES, tmp_path) / "kubelet"
    kubelet.unlink()
    kubelet.write_text("#!/bin/sh\necho this kubelet has a fault >&2\nexit 3\n")
    kubelet.chmod(0o755)
    return tmp_path


def test_a_cluster_that_was_taken_down(before: Machine, tmp_path: Path) -> None:
    cluster("up", "--nodes", "1").check_returncode()
    _run_a_pod(_found(), tmp_path)
    assert look() != before

    cluster("down").check_returncode()

    assert look() == before


def test_a_cluster_that_failed_half_way(before: Machine, broken_cache: Path) -> None:
    failed = cluster("up", "--nodes", "1", "--cache-dir", str(broken_cache))

    assert failed.returncode == 1
    assert "kubelet-node1 ended with 3 before the nodes are Ready" in failed.stderr
    assert "this kubelet has a fault" in failed.stderr
    logs = STATE / NAME
    assert [path.name for path in logs.iterdir()] == ["log"]
    cluster("down").check_returncode()
    assert look() == before


def test_a_start_that_was_killed_with_all_it_had_started(before: Machine) -> None:
    starting = subprocess.Popen(_command("up", "--nodes", "1"), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_for("the first node's containerd", lambda: _found_or_none() and _socket_exists())
    starting.kill()
    starting.wait()
    _kill_everything()
    assert look() != before

    cluster("down").check_returncode()

    assert look() == before


def test_a_cluster_that_was_killed_starts_again(before: Machine, tmp_path: Path) -> None:
    cluster("up", "--nodes", "1").check_returncode()
    _run_a_pod(_found(), tmp_path)
    _kill_everything()

    again = cluster("up", "--nodes", "1")

    assert again.returncode == 0, again.stderr
    assert images.present("localhost/cosyvoice-cluster/busybox:test", cluster=_found())
    assert get(_found(), "pods", "--namespace=default")["items"] == []
    cluster("down").check_returncode()
    assert look() == before


def cluster(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of the cluster's commands as a user would."""
    return subprocess.run(_command(command, *arguments), capture_output=True, text=True, timeout=400, check=False)


def _command(command: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "dev.cluster", command, "--name", NAME, "--state-dir", str(STATE), *arguments]


def _found() -> Cluster:
    found = _found_or_none()
    assert found is not None
    return found


def _found_or_none() -> Cluster | None:
    return registry.find(NAME, STATE)


def _socket_exists() -> bool:
    return _found().nodes[0].socket.exists()


def _run_a_pod(where: Cluster, folder: Path) -> None:
    """Something that holds a network namespace, cgroups and a tmpfs."""
    reference = "localhost/cosyvoice-cluster/busybox:test"
    target = folder / "busybox.tar"
    images.load(target, reference, archive.write(target, reference, Path("/bin/busybox")), where)
    container = {
        "name": "main",
        "image": reference,
        "imagePullPolicy": "Never",
        "args": ["sleep", "1000"],
        "volumeMounts": [{"name": "memory", "mountPath": "/memory"}],
    }
    volumes = [{"name": "memory", "emptyDir": {"medium": "Memory"}}]
    metadata = {"name": "staying", "namespace": "default"}
    spec = {"containers": [container], "volumes": volumes}
    apply(where, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    wait_for(
        "the pod to run",
        lambda: get(where, "pod/staying", "--namespace=default")["status"].get("phase") == "Running",
    )


def _kill_everything() -> None:
    """What a machine's owner may do to every process at once."""
    where = _found()
    while pids := cgroups.members(where):
        processes.send(pids, signal.SIGKILL)


def _processes_of(words: str) -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if words in line:
                yield f"{entry.name} {line}"


def _lines(*command: str) -> frozenset[str]:
    """Lines of a command without what counts down: an address's remaining lifetime."""
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return frozenset(line for line in printed.splitlines() if "valid_lft" not in line or "forever" in line)
