"""The status that a pass writes, and what it keeps of earlier ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cosyvoice_operator import api_status, rollout, status
from cosyvoice_operator.api_status import FailureRecord, Load, Staged, Status
from cosyvoice_operator.observed import Container, Observed, WorkerStatus
from tests.unit.operator.builders import (
    POLICY,
    START,
    ended_container,
    full,
    model,
    pod,
    ready_pod,
    serving,
    staged_container,
    stored,
    target_of,
    workload,
)

V1 = target_of(model())
V2 = target_of(model(version="v2"))
LATER = START + timedelta(hours=1)
SOON = START + timedelta(seconds=5)  # no deadline passes meanwhile
WARM = WorkerStatus(phase="Ready", load={"import": 2.0, "map": 0.1, "build": 0.2, "warmUp": 3.0})


def report(observed: Observed, before: Status | None = None, now: datetime = START, **spec: Any) -> Status:
    asked = model(status=before, **spec)
    return status.report(asked, observed, rollout.decide(asked, observed, POLICY, now), now)


def truths(written: Status) -> dict[str, str]:
    return {condition.type: condition.status for condition in written.conditions}


def test_a_model_that_serves_says_so_in_every_field() -> None:
    written = report(serving(V1))

    assert (written.active_version, written.active_revision, written.last_good_revision) == ("v1", V1, V1)
    assert (written.target_version, written.target_revision) == ("v1", V1)
    assert (written.ready, written.replicas, written.ready_replicas, written.reason) == ("2/2", 2, 2, "Ready")
    assert written.selector == "cosyvoice.dev/model=narrator,app.kubernetes.io/component=worker"
    assert truths(written) == {
        "Ready": "True",
        "Progressing": "False",
        "Stalled": "False",
        "Degraded": "False",
        "RolledBack": "False",
        "Pinned": "False",
        "Available": "True",
        "WeightsStaged": "True",
        "WarmedUp": "True",
    }


def test_a_new_model_says_what_it_waits_for() -> None:
    written = report(Observed())

    assert (written.active_version, written.ready, written.reason) == (None, "0/2", "Creating")
    assert truths(written) == {
        "Ready": "False",
        "Progressing": "True",
        "Stalled": "False",
        "Degraded": "False",
        "RolledBack": "False",
        "Pinned": "False",
        "Available": "False",
        "WeightsStaged": "False",
        "WarmedUp": "False",
    }


def test_times_of_transition_move_only_where_the_status_turned() -> None:
    before = report(Observed())
    after = report(serving(V1), before, LATER)

    times = {condition.type: condition.last_transition_time for condition in after.conditions}
    assert times["Ready"] == times["Available"] == "2026-11-30T13:00:00Z"
    assert times["Stalled"] == times["Degraded"] == "2026-11-30T12:00:00Z"


def test_the_old_version_stays_available_while_the_new_one_fails() -> None:
    pods = (
        ready_pod(V1, "old"),
        pod(
            V2, "new", version="v2", stage=ended_container(65, reason="LFSPointer", file="llm.pt", message="a pointer")
        ),
    )
    observed = Observed(
        revisions=(stored(V2), stored(V1)),
        workload=workload(V2, 1, total=2, updated=1, ready=1, available=1),
        pods=pods,
    )

    written = report(observed, report(serving(V1, 1)), LATER, version="v2", worker={"replicas": 1})

    assert (written.active_version, written.target_version, written.ready) == ("v1", "v2", "1/1")
    assert truths(written) | {"WeightsStaged": "", "WarmedUp": ""} == {
        "Ready": "False",
        "Progressing": "False",
        "Stalled": "True",
        "Degraded": "True",
        "RolledBack": "False",
        "Pinned": "False",
        "Available": "True",
        "WeightsStaged": "",
        "WarmedUp": "",
    }
    assert written.failures == (
        FailureRecord(
            revision=V2,
            version="v2",
            reason="LFSPointer",
            message="a pointer (file llm.pt, pod new, node node1)",
            file="llm.pt",
            pod="new",
            node="node1",
            time="2026-11-30T12:00:09Z",
        ),
    )


def test_where_the_time_went_is_kept_for_the_first_pod_that_was_ready() -> None:
    first = report(Observed(workload=full(V1, 1), pods=(ready_pod(V1, "a", status=WARM),)))
    second = report(Observed(workload=full(V1, 1), pods=(ready_pod(V1, "b", status=WARM),)), first, LATER)

    assert first.staged == Staged(
        revision=V1, digest="sha256:00", bytes=1000, seconds=0.5, pod="a", node="node1"
    )  # fmt: skip
    assert first.load == Load(
        revision=V1, pod="a", schedule=1.0, stage=0.5, import_=2.0, map=0.1, build=0.2, warm_up=3.0, total=20.0
    )
    assert (second.staged, second.load) == (first.staged, first.load)


def test_a_new_target_starts_with_empty_records() -> None:
    before = report(Observed(workload=full(V1, 1), pods=(ready_pod(V1, "a", status=WARM),)))

    after = report(serving(V1), before, version="v2")

    assert (after.staged, after.load) == (None, None)
    assert (truths(after)["WeightsStaged"], truths(after)["WarmedUp"]) == ("False", "False")


def test_a_worker_that_gives_no_answer_leaves_the_times_open() -> None:
    assert report(serving(V1)).load is None


def test_clocks_that_disagree_leave_out_a_time_instead_of_telling_less_than_nothing() -> None:
    early = ready_pod(
        V1, "a", status=WARM, scheduled=START - timedelta(hours=2), ready_since=START - timedelta(hours=1)
    )

    load = report(Observed(workload=full(V1, 1), pods=(early,))).load

    assert load is not None
    assert (load.schedule, load.total, load.map) == (None, None, 0.1)


def test_without_preload_nothing_is_called_warm() -> None:
    lazy = model(engine={"preload": False})
    written = report(serving(target_of(lazy)), engine={"preload": False})

    condition = written.condition("WarmedUp")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "PreloadOff")


def test_one_failure_is_kept_once_with_its_latest_occurrence() -> None:
    def crash(name: str, code: int) -> Observed:
        return Observed(workload=workload(V1), pods=(pod(V1, name, worker=ended_container(code, file="llm.pt")),))

    first = report(crash("a", 66))
    again = report(crash("b", 66), first)
    other = report(crash("b", 70), again)

    assert [(record.reason, record.pod) for record in again.failures] == [("IncompatibleModel", "b")]
    assert {record.reason for record in other.failures} == {"IncompatibleModel", "WarmUpFailed"}


def test_the_newest_ten_failures_are_kept() -> None:
    old = tuple(
        FailureRecord(revision=f"r{n}", version="v", reason="Crashed", message="", time=f"2026-01-{n + 1:02}T00:00:00Z")
        for n in range(10)
    )
    observed = Observed(workload=workload(V1), pods=(pod(V1, worker=ended_container(1)),))

    kept = report(observed, Status(failures=old)).failures

    assert len(kept) == 10
    assert (kept[0].revision, kept[-1].revision) == (V1, "r1")


def test_a_spec_that_cannot_be_read_keeps_what_is_known() -> None:
    before = report(serving(V1))

    after = status.unreadable(model().identity, before, "spec: no such field", LATER)

    assert (after.active_version, after.reason, after.message) == ("v1", "InvalidSpec", "spec: no such field")
    assert (truths(after)["Stalled"], truths(after)["Ready"], truths(after)["Available"]) == ("True", "False", "True")


def test_what_a_swapped_version_took_to_stage_is_told_by_the_worker_that_serves_it() -> None:
    told = replace(WARM, digest="sha256:22", staged_bytes=2000, staged_seconds=0.2)
    swapped = ready_pod(V2, template=V1, status=told, node="node1")

    written = report(Observed(pods=(swapped,), workload=replace(full(V2, 1), template=V1)), version="v2")

    assert written.staged == Staged(
        revision=V2, digest="sha256:22", bytes=2000, seconds=0.2, pod="narrator-a", node="node1"
    )
    staged = written.condition("WeightsStaged")
    assert staged is not None
    assert staged.message == "sha256:22: 2000 bytes in 0.2 s"


containers = st.sampled_from(
    [
        Container(),
        Container(running=True),
        Container(waiting_reason="ErrImagePull", waiting_message="no"),
        staged_container(digest="sha256:00", bytes=5, elapsed_seconds=0.25),
        ended_container(65, file="llm.pt"),
        ended_container(137, restarts=4),
    ]
)
pods = st.builds(
    pod,
    st.sampled_from([V1, V2]),
    st.sampled_from(["a", "b", "c"]),
    stage=containers,
    worker=containers,
    ready=st.booleans(),
    ready_since=st.just(LATER),
    status=st.sampled_from([None, WARM]),
)
workloads = st.builds(
    workload,
    st.sampled_from([V1, V2, None]),
    st.integers(0, 3),
    total=st.integers(0, 3),
    updated=st.integers(0, 3),
    ready=st.integers(0, 3),
    available=st.integers(0, 3),
    deadline_exceeded=st.booleans(),
)
observations = st.builds(
    Observed,
    revisions=st.sampled_from([(), (stored(V1),), (stored(V2), stored(V1))]),
    workload=st.none() | workloads,
    pods=st.lists(pods, max_size=3).map(tuple),
    refusal=st.sampled_from([None, "refused"]),
)


@settings(max_examples=150)
@given(st.lists(observations, min_size=1, max_size=4), st.booleans())
def test_a_pass_that_sees_the_same_again_writes_the_same_again(seen: list[Observed], paused: bool) -> None:
    """Whatever the history: what was written, read back, and the same observation a little later give no new status."""
    before: Status | None = None
    for observed in seen:
        before = report(observed, before, version="v2", paused=paused)
    settled = report(seen[-1], before, version="v2", paused=paused)

    again = report(seen[-1], settled, SOON, version="v2", paused=paused)

    assert again == settled
    assert api_status.parse_status({"status": api_status.encode_status(again)}) == again
