"""How the parts of a rollback are read out of what was heard and logged."""

from __future__ import annotations

import pytest

from benchmarks import rollback
from benchmarks._exits import Ends, Exit, exit_of
from benchmarks._recovery import Recovery, recovery
from dev.audit import Request

OPERATOR, KUBELET = "operator", "system:node:node1"
EXITED = '2026-11-30 23:51:11.25 +0000 UTC k8s.io /tasks/exit {"container_id":"c1","id":"%s","exit_status":66,%s}'
AT = '"exited_at":{"seconds":100,"nanos":250000000}'


def request(user: str, verb: str, kind: str, received: float, seconds: float = 0.01) -> Request:
    resource, _, subresource = kind.partition("/")
    return Request(
        user=user,
        verb=verb,
        group="",
        resource=resource,
        subresource=subresource,
        namespace="speech",
        name="narrator-1" if kind == "pods/status" else "narrator",
        code=200,
        received=received,
        completed=received + seconds,
    )


ROLLBACK = (
    request(OPERATOR, "patch", "deployments", 95.0),  # the bad version goes out
    request(KUBELET, "patch", "pods/status", 99.9),
    request(OPERATOR, "get", "cosyvoicemodels", 100.0),
    request(KUBELET, "patch", "pods/status", 100.70, 0.05),
    request(OPERATOR, "get", "cosyvoicemodels", 100.80),
    request(OPERATOR, "update", "cosyvoicemodels/status", 100.90),
    request(OPERATOR, "patch", "deployments", 100.95, 0.05),
    request(KUBELET, "patch", "pods/status", 101.2),
    request(OPERATOR, "get", "cosyvoicemodels", 101.3),
)


def parts(found: Recovery) -> list[float]:
    return [round(seconds, 3) for seconds in (found.report, found.watch, found.decision, found.write, found.total)]


def test_a_rollback_is_split_at_the_report_the_pass_and_the_decision() -> None:
    found = recovery(ROLLBACK, "narrator-1", 100.25, model="narrator", operator=OPERATOR)

    assert parts(found) == [0.5, 0.05, 0.1, 0.1, 0.75]


def test_a_pass_that_had_begun_before_the_report_did_not_wait_for_the_watch() -> None:
    requests = [each for each in ROLLBACK if each.received != 100.80]

    found = recovery(requests, "narrator-1", 100.25, model="narrator", operator=OPERATOR)

    assert parts(found) == [0.5, 0.0, 0.15, 0.1, 0.75]


def test_a_rollback_that_is_not_in_the_log_is_an_error() -> None:
    with pytest.raises(LookupError, match="no patch deployments was received after"):
        recovery(ROLLBACK[:6], "narrator-1", 100.25, model="narrator", operator=OPERATOR)


def test_containerd_tells_of_the_end_of_a_container_to_the_nanosecond() -> None:
    assert exit_of(EXITED % ("c1", AT)) == Exit("c1", 100.25, 66)
    assert exit_of(EXITED % ("exec-7", AT)) is None
    assert exit_of('2026-11-30 23:51:11.29 +0000 UTC k8s.io /tasks/delete {"container_id":"c1"}') is None


def test_the_failure_of_a_round_is_the_first_of_a_pod_that_was_not_there_before() -> None:
    ends = Ends()
    ends.hear_watch("narrator-0 containerd://old")
    before = set(ends.pods)
    ends.exits += [Exit("old", 99.0, 66), Exit("of another model", 99.5, 66), Exit("good", 100.0, 0)]
    ends.exits += [Exit("again", 102.0, 66), Exit("first", 101.0, 66)]
    ends.hear_watch("narrator-1  containerd://good")
    ends.hear_watch("narrator-1 containerd://first containerd://again")

    assert ends.first_failure(but=before) == ("narrator-1", 101.0)
    with pytest.raises(LookupError, match="of the pods \\[\\] none was seen to fail"):
        ends.first_failure(but=ends.pods)


def test_the_goals_are_about_the_whole() -> None:
    text = rollback.report([Recovery(0.5, 0.05, 0.1, 0.1), Recovery(0.4, 0.05, 0.1, 0.1), Recovery(2.9, 0.1, 0.1, 0.1)])

    assert "| container's end to restored template | 0.750 (0.650-3.200) |" in text
    assert "median, seconds: 0.75, at most 1 wanted: met" in text
    assert "maximum, seconds: 3.20, at most 3 wanted: NOT met" in text
