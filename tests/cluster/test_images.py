"""The built images, run outside Kubernetes under a pod's restrictions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cosyvoice_worker._version import __version__
from dev import images
from dev.images import Mount
from dev.images.layout import REPOSITORY

KINDS = ["operator", "worker"]

# Every module of Python, the packages and the project needs byte code that is used without a look at the source,
# since a read-only root cannot keep what would be compiled at a start. Flags: found by hash, not checked.
FIND_BYTE_CODE_MISSING = """
import importlib.util, pathlib, sys
sources = [s for folder in sys.path if folder for s in pathlib.Path(folder).rglob("*.py")]
def unchecked(source):
    byte_code = pathlib.Path(importlib.util.cache_from_source(source))
    return byte_code.exists() and byte_code.read_bytes()[4:8] == b"\\x01\\0\\0\\0"
print(len(sources), *[source for source in sources if not unchecked(source)], sep="\\n")
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_image_says_numerically_that_it_is_not_root(kind: str) -> None:
    assert images.config(kind).user == "10001:65534"


@pytest.mark.parametrize("kind", KINDS)
def test_the_image_is_labelled(kind: str) -> None:
    labels = images.config(kind).labels

    assert labels["org.opencontainers.image.title"] == f"cosyvoice-{kind}"
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


@pytest.mark.parametrize(
    ("kind", "command", "ports"),
    [("operator", ("run",), {"8080/tcp", "9090/tcp"}), ("worker", (), {"8000/tcp", "8081/tcp"})],
)
def test_the_image_starts_the_program(kind: str, command: tuple[str, ...], ports: set[str]) -> None:
    config = images.config(kind)

    assert config.entrypoint == (f"cosyvoice-{kind}",)
    assert config.command == command
    assert config.ports == ports


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_runs_as_that_user_on_a_read_only_root(kind: str) -> None:
    script = "id -u; id -g; touch /written; touch /app/written; touch /tmp/written && echo temporary files work"

    done = images.run(kind, ["sh", "-c", script])

    assert done.stdout.splitlines() == ["10001", "65534", "temporary files work"]
    assert done.stderr.count("Read-only file system") == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_explains_itself(kind: str) -> None:
    done = images.run(kind, [f"cosyvoice-{kind}", "--help"])

    assert done.returncode == 0, done.stderr
    assert f"usage: cosyvoice-{kind}" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_no_compiler_or_package_installer_is_inside(kind: str) -> None:
    programs = ["c++", "cc", "clang", "g++", "gcc", "git", "ld", "make", "pip", "pip3", "uv"]
    folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/cosyvoice/bin"

    done = images.run(
        kind, ["sh", "-c", 'for p; do command -v "$p"; done; true', "sh", *programs], env={"PATH": folders}
    )

    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("kind", KINDS)
def test_every_module_has_byte_code_that_is_used_as_it_is(kind: str) -> None:
    done = images.run(kind, ["python", "-c", FIND_BYTE_CODE_MISSING])

    modules, *missing = done.stdout.splitlines()
    assert int(modules) > 1000, done.stderr
    assert missing == []


def test_each_image_holds_its_own_half_of_the_code() -> None:
    content = {kind: images.run(kind, ["ls", "/app"]).stdout.split() for kind in KINDS}

    assert content == {"operator": ["cosyvoice_operator"], "worker": ["cosyvoice_worker"]}


def test_the_worker_has_nothing_of_a_gpu_compiler() -> None:
    done = images.run(
        "worker", ["find", "/usr/lib", "-name", "libLLVM*", "-o", "-name", "libamd*", "-o", "-name", "libhsa*"]
    )

    assert done.stdout == ""


def test_every_shared_library_of_torch_finds_what_it_links() -> None:
    script = 'for f in $(find /usr/lib -name "*.so*" -type f); do ldd $f 2>&1 | grep "not found" | sed "s|^|$f:|"; done'

    done = images.run("worker", ["sh", "-c", script])

    assert done.stdout == ""


def test_the_engine_meets_its_recorded_results_inside_the_worker_image() -> None:
    """With the image's own torch, which is older than the development environment's; loading depends on it too."""
    files = sorted((REPOSITORY / "tests" / "engine").glob("test_*.py"))
    chosen = [path for path in files if path.name.startswith("test_weights_") or "golden" in path.read_text("utf-8")]

    done = images.run_tests(["-q", *(str(path.relative_to(REPOSITORY)) for path in chosen)])

    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_a_writable_mount_gives_results_back_and_the_exit_code_is_the_commands(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)

    done = images.run(
        "worker", ["sh", "-c", "echo speech > /out/result; exit 7"], mounts=[Mount(out, "/out", writable=True)]
    )

    assert done.returncode == 7
    assert (out / "result").read_text() == "speech\n"


def test_there_is_no_way_to_the_network() -> None:
    connect = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"

    done = images.run("worker", ["python", "-c", connect])

    assert "Network is unreachable" in done.stderr


def test_a_command_that_takes_too_long_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        images.run("worker", ["sleep", "4711"], timeout=3)

    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert b"sleep\x004711\x00" not in running
