"""From how an engine process ended to the outcome the front tells. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from cosyvoice_worker.channel import Failed
from cosyvoice_worker.outcome import Outcome, Phase, Reason

_PHASES = {phase.value: phase for phase in Phase}
_REASONS = {reason.value: reason for reason in Reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How an engine ended. `status` is its exit code, or minus the number of the signal that killed it.

    `phase` is where its load was, "Serve" after it; `failed` what it said itself; `killed` why the front ended it;
    `oom_killed` whether the kernel killed for memory meanwhile; `elapsed` seconds since its start.
    """

    status: int
    phase: str
    failed: Failed | None = None
    killed: Outcome | None = None
    oom_killed: bool = False
    elapsed: float = 0.0


def outcome_of(death: Death) -> Outcome:
    """The outcome: what the front decided, else what the engine said of itself, else what its exit status tells."""
    if death.killed is not None:
        return death.killed
    if death.failed is not None:
        return _outcome_of_failed(death.failed, death.elapsed)
    where = f"in phase {death.phase} after {death.elapsed:.1f} s"
    if death.status >= 0:
        message = f"the engine process ended {where} with exit code {death.status} and said no reason"
        return _died(death, Reason.ENGINE_DIED, message)
    name = _signal_name(-death.status)
    if death.oom_killed and -death.status == signal.SIGKILL:
        message = (
            f"the kernel killed the engine process {where} because the container's memory limit was reached; "
            "raise the worker's memory limit"
        )
        return _died(death, Reason.OUT_OF_MEMORY, message)
    return _died(death, Reason.ENGINE_DIED, f"the engine process was killed {where} by {name}")


def load_timeout(phase: str, timeout: float, elapsed: float) -> Outcome:
    """The circuit breaker's outcome."""
    return Outcome(
        reason=Reason.LOAD_TIMEOUT,
        phase=_phase(phase),
        message=f"the model was not loaded within {timeout:g} s: it is still in phase {phase}; the engine was killed",
        expected=f"at most {timeout:g} s",
        actual=f"{elapsed:.1f} s",
        elapsed_seconds=elapsed,
    )


def stuck(seconds: float, limit: float) -> Outcome:
    """The watchdog's outcome."""
    return Outcome(
        reason=Reason.ENGINE_DIED,
        phase=Phase.SERVE,
        message=f"the engine made no step for {seconds:.0f} s while it had a request; it was killed",
        expected=f"a step within {limit:.0f} s",
        actual=f"none for {seconds:.0f} s",
    )


def broken_channel(detail: str) -> Outcome:
    """The outcome of an engine that wrote what is no message."""
    return Outcome(reason=Reason.ENGINE_DIED, phase=Phase.SERVE, message=f"the engine was killed: {detail}")


def not_started(error: OSError) -> Outcome:
    """The outcome when the kernel gives no process."""
    message = f"the engine process cannot be started: {error}"
    return Outcome(reason=Reason.ENGINE_DIED, phase=Phase.MAP, message=message)


def defect(error: BaseException) -> Outcome:
    """The outcome of a swap that the front itself could not carry out."""
    message = f"the front failed with {type(error).__name__}: {error}"
    return Outcome(reason=Reason.ENGINE_DIED, phase=Phase.MAP, message=message)


def crowded_out(serving: Outcome) -> Outcome:
    """The outcome of a second engine that is ended because the one that serves ran out of memory beside it."""
    return Outcome(
        reason=Reason.OUT_OF_MEMORY,
        phase=Phase.MAP,
        message=f"no room for a second engine: the one that serves ran out of memory beside it: {serving.message}",
    )


def too_many_deaths(deaths: int, minutes: float, last: Outcome) -> Outcome:
    """The outcome of a worker that gives up."""
    return Outcome(
        reason=Reason.ENGINE_DIED,
        phase=Phase.SERVE,
        message=f"the engine process ended {deaths} times within {minutes:g} minutes; the last time: {last.message}",
        file=last.file,
        tensor=last.tensor,
        expected=f"fewer than {deaths} ends in {minutes:g} minutes",
        actual=f"{deaths}, the last with {last.reason.value}",
    )


def _outcome_of_failed(failed: Failed, elapsed: float) -> Outcome:
    reason = _REASONS.get(failed.reason, Reason.ENGINE_DIED)
    message = failed.message if failed.reason in _REASONS else f"{failed.reason}: {failed.message}"
    return Outcome(
        reason=reason,
        phase=_phase(failed.phase),
        message=message,
        file=failed.file,
        tensor=failed.tensor,
        expected=failed.expected,
        actual=failed.actual,
        elapsed_seconds=elapsed,
    )


def _died(death: Death, reason: Reason, message: str) -> Outcome:
    actual = f"exit code {death.status}" if death.status >= 0 else _signal_name(-death.status)
    return Outcome(
        reason=reason, phase=_phase(death.phase), message=message, actual=actual, elapsed_seconds=death.elapsed
    )


def _phase(name: str) -> Phase:
    """What comes before Map (starting, importing) is told as Map: a termination message knows no earlier one."""
    return _PHASES.get(name, Phase.SERVE if name == "Ready" else Phase.MAP)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
