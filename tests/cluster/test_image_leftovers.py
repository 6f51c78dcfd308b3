"""What a killed run leaves in the image storage is cleared by the next build. On a small image of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.images import locks, references, sandbox, storage
from dev.images.layout import Layout
from dev.images.storage import Storage

BUSYBOX = Path("/bin/busybox")
SLEEP = [str(BUSYBOX), "sleep", "4712"]
RUN = "import sys; from pathlib import Path; from dev.images import sandbox; from dev.images.layout import Layout; "
RUN += "sandbox.run(Layout(Path(sys.argv[1])), 'worker', sys.argv[2:])"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Storage]:
    """A storage with one image, busybox, that is recorded as the worker's."""
    opened = storage.open_storage(Layout(tmp_path / "images"))
    container = opened.output("from", "scratch")
    opened.output("copy", "--quiet", container, str(BUSYBOX), str(BUSYBOX))
    opened.output("config", "--user", "10001:65534", container)
    opened.output("commit", "--quiet", "--rm", container, references.working_name("worker"))
    image = references.image("worker", "1", opened.image_id(references.working_name("worker")))
    references.write(opened.layout.references, {"operator": image, "worker": image})
    yield opened
    storage.clear_leftovers(opened)
    storage.remove_storage(opened)


@pytest.fixture
def killed_run(small: Storage) -> Storage:
    """The storage after a run whose Python was killed while its container was running."""
    with subprocess.Popen([sys.executable, "-c", RUN, str(small.layout.root), *SLEEP]) as process:
        _wait_for_sleep()
        process.send_signal(signal.SIGKILL)
    return small


def test_a_container_of_a_killed_run_is_ended_and_removed(killed_run: Storage) -> None:
    storage.clear_leftovers(killed_run)

    assert _sleeping() == []
    assert killed_run.output("containers", "--quiet") == ""
    assert list(killed_run.layout.scratch.iterdir()) == []
    assert storage.mounts_below(killed_run.layout.root, Path("/proc/self/mounts").read_text()) == []


def test_the_images_survive_the_clearing(killed_run: Storage) -> None:
    storage.clear_leftovers(killed_run)

    done = sandbox.run(killed_run.layout, "worker", [str(BUSYBOX), "id", "-u"])
    assert done.stdout == "10001\n"


def test_nothing_is_cleared_while_a_container_is_in_use(small: Storage) -> None:
    kept = small.layout.scratch / "kept"
    kept.touch()

    with locks.held(small.layout.use_lock, shared=True):
        storage.clear_leftovers(small)

    assert kept.exists()


def test_a_mount_that_was_left_is_unmounted(small: Storage) -> None:
    container = small.output("from", "--pull-never", references.working_name("worker"))
    small.output("mount", container)

    storage.clear_leftovers(small)

    assert storage.mounts_below(small.layout.root, Path("/proc/self/mounts").read_text()) == []
    assert small.output("containers", "--quiet") == ""


def test_a_storage_that_cannot_be_read_is_replaced(small: Storage, capsys: pytest.CaptureFixture[str]) -> None:
    [layers] = (small.layout.storage / "graph").glob("overlay-layers/layers.json")
    layers.write_text("cut of")

    storage.clear_leftovers(small)

    assert "starting afresh" in capsys.readouterr().out
    assert not small.has_image(references.working_name("worker"))


def _sleeping() -> list[int]:
    wanted = b"\x00".join(os.fsencode(word) for word in SLEEP) + b"\x00"
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if _cmdline(path) == wanted]


def _cmdline(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended meanwhile
        return b""


def _wait_for_sleep() -> None:
    deadline = time.monotonic() + 60
    while not _sleeping():
        if time.monotonic() > deadline:
            raise TimeoutError("the container did not start within 60 s")
        time.sleep(0.1)
