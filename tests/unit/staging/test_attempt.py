"""A staging in a process of its own: what comes of it, and that it ends whatever the source does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.staging.activity import Tell
from cosyvoice_worker.staging.attempt import Attempt
from cosyvoice_worker.staging.pointer import Staged
from cosyvoice_worker.staging.space import NoRoomError

STAGED = Staged(revision="r", digest="sha256:0", directory="0", bytes=1, seconds=0.1, files=1)
LONG = 60.0


def end_of(work: Callable[[Tell], Staged], root: Path, stall_seconds: float = LONG) -> Staged:
    attempt = Attempt(work, root, stall_seconds)
    while (staged := attempt.result(LONG)) is None:
        pass
    return staged


def failure_of(work: Callable[[Tell], Staged], root: Path, stall_seconds: float = LONG) -> WorkerError:
    with pytest.raises(WorkerError) as raised:
        end_of(work, root, stall_seconds)
    return raised.value


def test_success_comes_back(tmp_path: Path) -> None:
    assert end_of(lambda _tell: STAGED, tmp_path) == STAGED


def test_a_failure_comes_back_as_it_was(tmp_path: Path) -> None:
    wrong = fail(Reason.LFS_POINTER, Phase.STAGE, "a pointer", file="llm.pt", expected="5 bytes", actual="a pointer")

    def work(_tell: Tell) -> Staged:
        raise wrong

    error = failure_of(work, tmp_path)

    assert error.outcome == wrong.outcome
    assert not isinstance(error, NoRoomError)


def test_a_want_of_room_comes_back_as_one(tmp_path: Path) -> None:
    def work(_tell: Tell) -> Staged:
        raise NoRoomError(fail(Reason.OUT_OF_MEMORY, Phase.STAGE, "short").outcome, room=True)

    error = failure_of(work, tmp_path)

    assert isinstance(error, NoRoomError)
    assert error.room


def test_a_read_that_does_not_come_back_is_given_up(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def work(tell: Tell) -> Staged:
        tell("copying llm.pt (5 of 9 bytes so far)", "llm.pt")
        pipe.read_bytes()  # nobody ever writes
        return STAGED

    outcome = failure_of(work, tmp_path, stall_seconds=0.2).outcome

    assert (outcome.reason, outcome.exit_code, outcome.retryable) == (Reason.SOURCE_UNREACHABLE, 69, True)
    assert (outcome.file, outcome.expected) == ("llm.pt", "progress within 0.2 s")
    assert outcome.message == (
        "no progress for 0.2 s while copying llm.pt (5 of 9 bytes so far): is the source's storage there?"
    )


def test_saying_the_same_again_and_again_is_no_progress(tmp_path: Path) -> None:
    def work(tell: Tell) -> Staged:
        while True:
            tell("waiting", None)
            time.sleep(0.01)

    assert failure_of(work, tmp_path, stall_seconds=0.5).outcome.reason is Reason.SOURCE_UNREACHABLE


def test_whatever_moves_may_take_its_time(tmp_path: Path) -> None:
    def work(tell: Tell) -> Staged:
        for done in range(15):
            tell(f"copying ({done} of 15 bytes so far)", "llm.pt")
            time.sleep(0.1)
        return STAGED

    assert end_of(work, tmp_path, stall_seconds=1.0) == STAGED


@pytest.mark.parametrize(
    ("number", "reason", "how"),
    [(signal.SIGKILL, Reason.OUT_OF_MEMORY, "SIGKILL"), (signal.SIGUSR1, Reason.ENGINE_DIED, "SIGUSR1")],
)
def test_a_child_that_is_killed_is_told(tmp_path: Path, number: signal.Signals, reason: Reason, how: str) -> None:
    def work(tell: Tell) -> Staged:
        tell("copying llm.pt", "llm.pt")
        os.kill(os.getpid(), number)
        return STAGED

    outcome = failure_of(work, tmp_path).outcome

    assert (outcome.reason, outcome.file, outcome.retryable) == (reason, "llm.pt", True)
    assert outcome.message.startswith(f"the staging process ended by {how} while copying llm.pt")


def test_an_exception_that_nobody_foresaw_is_told(tmp_path: Path) -> None:
    def work(_tell: Tell) -> Staged:
        raise ZeroDivisionError

    outcome = failure_of(work, tmp_path).outcome

    assert outcome.reason is Reason.ENGINE_DIED
    assert outcome.message == "the staging process ended with code 1 while beginning"


def test_giving_up_ends_a_child_that_does_not_listen_and_removes_its_copy(tmp_path: Path) -> None:
    def work(tell: Tell) -> Staged:
        (tmp_path / ".lock").touch()
        (tmp_path / "incoming.partial").mkdir()
        (tmp_path / "pid").write_text(str(os.getpid()))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        tell("ready", "llm.pt")
        while True:
            time.sleep(1)

    attempt = Attempt(work, tmp_path, LONG)
    assert attempt.result(LONG) is None

    attempt.give_up()

    assert not (tmp_path / "incoming.partial").exists()
    with pytest.raises(ProcessLookupError):  # Neither running nor a zombie.
        os.kill(int((tmp_path / "pid").read_text()), 0)
