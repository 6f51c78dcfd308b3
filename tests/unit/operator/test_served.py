"""What is served counts, and not what labels say: pods that were swapped in place keep their old labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cosyvoice_operator.observed import Live, Observed, Pod, ReplicaSet, WorkerStatus, Workload
from cosyvoice_operator.served import by_what_is_served
from tests.unit.operator.builders import full, ready_pod, stored

OLD, NEW = "r1", "r2"
STAGER = {"spec": {"initContainers": [{"name": "stager"}]}}
BOTH = (
    replace(stored(NEW, version="v2"), template=STAGER),
    replace(stored(OLD, age=60), template=STAGER),
)
SWAPPED = Live(template=OLD, current=NEW)


def labelled(serves: str | None = None, name: str = "a") -> Pod:
    """A pod with the labels of OLD whose worker says that it serves `serves`; None: it does not answer."""
    return ready_pod(OLD, name, status=WorkerStatus(phase="Ready", revision=serves) if serves else None)


def seen(*pods: Pod, **fields: Any) -> Observed:
    return Observed(revisions=BOTH, workload=full(OLD), pods=pods, **fields)


def test_without_a_live_config_map_labels_tell_the_truth() -> None:
    plain = seen(labelled(), labelled(OLD, "b"), replica_sets=(ReplicaSet(revision=OLD, replicas=2),))

    assert by_what_is_served(plain) == plain


def test_a_live_config_map_that_only_holds_its_own_revision_changes_nothing() -> None:
    pinned = seen(labelled(), lives=(Live(template=OLD, current=OLD, pins={OLD: "sha256:00"}),))

    assert by_what_is_served(pinned) == pinned


def test_swapped_pods_are_pods_of_what_they_load() -> None:
    told = by_what_is_served(seen(labelled(NEW), labelled(None, "b"), lives=(SWAPPED,)))

    assert [(pod.revision, pod.version, pod.template, pod.carrier) for pod in told.pods] == [(NEW, "v2", OLD, OLD)] * 2
    assert told.workload is not None
    assert (told.workload.revision, told.workload.carrier, told.workload.updated) == (NEW, OLD, 2)
    assert told.carries(NEW)
    assert not told.carries(OLD)


def test_a_pod_that_serves_something_else_is_not_up_to_date() -> None:
    told = by_what_is_served(seen(labelled(NEW), labelled(OLD, "b"), lives=(SWAPPED,)))

    assert [pod.revision for pod in told.pods] == [NEW, OLD]
    assert isinstance(told.workload, Workload)
    assert told.workload.updated == 1


def test_a_pod_that_tries_is_ahead_of_the_others() -> None:
    told = by_what_is_served(
        seen(labelled(NEW), labelled(OLD, "b"), lives=(Live(template=OLD, current=OLD, candidate=NEW),))
    )

    assert [(pod.revision, pod.carrier) for pod in told.pods] == [(NEW, OLD), (OLD, OLD)]
    assert told.workload is not None
    assert (told.workload.revision, told.workload.template, told.workload.updated) == (OLD, None, 1)


def test_replica_sets_speak_of_what_their_pods_load_and_keep_their_template() -> None:
    sets = (ReplicaSet(revision=OLD, replicas=2), ReplicaSet(revision="r3", replicas=1))

    told = by_what_is_served(seen(replica_sets=sets, lives=(SWAPPED,)))

    assert told.scaled_revisions == {NEW, "r3"}
    assert [found.carrier for found in told.replica_sets] == [OLD, "r3"]


def test_a_revision_that_is_no_longer_stored_keeps_the_label_of_the_pod() -> None:
    (pod,) = by_what_is_served(seen(replace(labelled("ghost"), order="ghost.1.5"))).pods

    assert (pod.revision, pod.version) == ("ghost", "v1")


def test_a_pod_that_was_never_to_load_what_it_claims_to_serve_is_not_believed() -> None:
    (pod,) = by_what_is_served(seen(labelled("ghost"))).pods

    assert pod.revision == OLD


def test_there_may_be_no_deployment_and_one_without_our_label() -> None:
    assert by_what_is_served(Observed()) == Observed()
    nobodys = Observed(workload=Workload(revision=None, replicas=2))
    assert by_what_is_served(nobodys) == nobodys
