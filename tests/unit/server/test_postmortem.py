"""How an engine's end becomes the worker's exit code and termination message."""

from __future__ import annotations

import pytest

from cosyvoice_worker.channel import Failed
from cosyvoice_worker.outcome import Phase, Reason
from cosyvoice_worker.server.postmortem import Death, load_timeout, outcome_of, stuck, too_many_deaths

SHAPE = Failed(
    id=0,
    reason="ShapeMismatch",
    message="llm.pt: llm_decoder.weight has another shape",
    phase="Map",
    file="llm.pt",
    tensor="llm_decoder.weight",
    expected="(6564, 896)",
    actual="(10, 896)",
)

DEATHS: dict[str, tuple[Death, Reason, int, Phase, str]] = {
    "the engine's own word": (
        Death(status=66, phase="Map", failed=SHAPE),
        Reason.SHAPE_MISMATCH,
        66,
        Phase.MAP,
        "llm.pt: llm_decoder.weight has another shape",
    ),
    "a reason of another release": (
        Death(status=1, phase="Build", failed=Failed(id=0, reason="Novel", message="what", phase="Build")),
        Reason.ENGINE_DIED,
        73,
        Phase.BUILD,
        "Novel: what",
    ),
    "an exit code without a word": (
        Death(status=1, phase="Import", elapsed=0.52),
        Reason.ENGINE_DIED,
        73,
        Phase.MAP,
        "the engine process ended in phase Import after 0.5 s with exit code 1 and said no reason",
    ),
    "a signal": (
        Death(status=-11, phase="WarmUp", elapsed=3.0),
        Reason.ENGINE_DIED,
        73,
        Phase.WARM_UP,
        "the engine process was killed in phase WarmUp after 3.0 s by SIGSEGV",
    ),
    "killed, memory was not the cause": (
        Death(status=-9, phase="Ready", elapsed=3.0),
        Reason.ENGINE_DIED,
        73,
        Phase.SERVE,
        "the engine process was killed in phase Ready after 3.0 s by SIGKILL",
    ),
    "killed for memory": (
        Death(status=-9, phase="WarmUp", elapsed=3.0, oom_killed=True),
        Reason.OUT_OF_MEMORY,
        71,
        Phase.WARM_UP,
        "the kernel killed the engine process in phase WarmUp after 3.0 s because the container's memory limit was "
        "reached; raise the worker's memory limit",
    ),
    "another process was killed for memory": (
        Death(status=-6, phase="Ready", elapsed=3.0, oom_killed=True),
        Reason.ENGINE_DIED,
        73,
        Phase.SERVE,
        "the engine process was killed in phase Ready after 3.0 s by SIGABRT",
    ),
    "an unknown signal": (
        Death(status=-99, phase="Ready", elapsed=1.0),
        Reason.ENGINE_DIED,
        73,
        Phase.SERVE,
        "the engine process was killed in phase Ready after 1.0 s by signal 99",
    ),
    "the front killed it": (
        Death(status=-9, phase="Build", killed=load_timeout("Build", 120, 120.3), oom_killed=True),
        Reason.LOAD_TIMEOUT,
        72,
        Phase.BUILD,
        "the model was not loaded within 120 s: it is still in phase Build; the engine was killed",
    ),
}


@pytest.mark.parametrize(("death", "reason", "code", "phase", "message"), DEATHS.values(), ids=DEATHS)
def test_a_death_has_one_outcome(death: Death, reason: Reason, code: int, phase: Phase, message: str) -> None:
    outcome = outcome_of(death)

    assert (outcome.reason, outcome.exit_code, outcome.phase, outcome.message) == (reason, code, phase, message)


def test_what_the_engine_named_is_kept() -> None:
    outcome = outcome_of(Death(status=66, phase="Map", failed=SHAPE, elapsed=1.5))

    assert (outcome.file, outcome.tensor, outcome.expected, outcome.actual) == (
        "llm.pt",
        "llm_decoder.weight",
        "(6564, 896)",
        "(10, 896)",
    )
    assert outcome.elapsed_seconds == 1.5


def test_a_worker_that_gives_up_tells_the_last_cause() -> None:
    outcome = too_many_deaths(3, 10, stuck(81.2, 80))

    assert outcome.exit_code == 73
    assert outcome.message == (
        "the engine process ended 3 times within 10 minutes; the last time: "
        "the engine made no step for 81 s while it had a request; it was killed"
    )
