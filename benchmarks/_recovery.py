"""From a container's end to the restored template, read out of the API server's audit log. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dev.audit import Request


@dataclass(frozen=True, slots=True)
class Recovery:
    """Seconds of one rollback, in the order in which they pass.

    report    the kubelet: from the container's end until the API server has it in the pod's status
    watch     until the operator begins the pass that acts on it
    decision  until that pass asks to write the model's status: everything was read and judged
    write     until the API server has the restored template: status, event, Deployment
    """

    report: float
    watch: float
    decision: float
    write: float

    @property
    def total(self) -> float:
        return self.report + self.watch + self.decision + self.write


def recovery(requests: Sequence[Request], pod: str, ended: float, *, model: str, operator: str) -> Recovery:
    """The parts of the rollback after a container of `pod` ended at `ended`, in seconds since 1970.

    `requests` are those of one namespace, in the order in which they finished; `operator` is the operator's user name.
    Raises LookupError where one that has to be there is not.
    """
    ours = [each for each in requests if each.user == operator and each.name == model]
    restored = _first(ours, "patch", "deployments", ended)
    decided = _last(ours, "update", "cosyvoicemodels/status", restored.received)
    begun = _last(ours, "get", "cosyvoicemodels", decided.received)
    reported = _first([each for each in requests if each.name == pod], "patch", "pods/status", ended)
    # A pass that had begun already may still read the report: then there was no wait for the watch.
    seen = max(begun.received, reported.completed)
    return Recovery(
        report=reported.completed - ended,
        watch=seen - reported.completed,
        decision=decided.received - seen,
        write=restored.completed - decided.received,
    )


def _first(requests: Sequence[Request], verb: str, kind: str, after: float) -> Request:
    """The first that was received after that time."""
    found = [each for each in requests if (each.verb, each.kind) == (verb, kind) and each.received > after]
    if not found:
        raise LookupError(f"no {verb} {kind} was received after {after:.3f}")
    return min(found, key=lambda each: each.received)


def _last(requests: Sequence[Request], verb: str, kind: str, before: float) -> Request:
    """The last that was received before that time."""
    found = [each for each in requests if (each.verb, each.kind) == (verb, kind) and each.received < before]
    if not found:
        raise LookupError(f"no {verb} {kind} was received before {before:.3f}")
    return max(found, key=lambda each: each.received)
