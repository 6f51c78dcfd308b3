"""What others put into the Deployment's template, on the way back to a revision whose pods still run."""

from __future__ import annotations

import pytest

from cosyvoice_operator import foreign
from cosyvoice_operator.observed import Observed, ReplicaSet
from tests.unit.operator.builders import stored, workload

RESTARTED = "kubectl.kubernetes.io/restartedAt"


@pytest.mark.parametrize(
    ("deployment", "replica_set", "expected"),
    [
        ({}, {}, {}),
        ({RESTARTED: "2"}, {}, {RESTARTED: None}),  # restarted since: the old pods know nothing of it
        ({RESTARTED: "1"}, {RESTARTED: "1"}, {}),  # restarted before: the old pods have it
        ({RESTARTED: "2"}, {RESTARTED: "1"}, {RESTARTED: "1"}),
        ({}, {RESTARTED: "1"}, {RESTARTED: "1"}),
        ({"theirs": "x", RESTARTED: "1"}, {RESTARTED: "1"}, {"theirs": None}),
    ],
)
def test_foreign_annotations_become_those_of_the_replica_set_to_come_back(
    deployment: dict[str, str], replica_set: dict[str, str], expected: dict[str, str | None]
) -> None:
    observed = Observed(
        revisions=(stored("r1"),),
        workload=workload("r2", annotations=deployment),
        replica_sets=(
            ReplicaSet(revision="r1", replicas=0, annotations={"another": "one"}),
            ReplicaSet(revision="r1", replicas=2, annotations=replica_set),
            ReplicaSet(revision="r2", replicas=1, annotations={"of": "r2"}),
        ),
    )

    assert foreign.changes(observed, "r1") == expected


def test_nothing_is_changed_without_a_replica_set_or_where_nothing_comes_back() -> None:
    sets = (ReplicaSet(revision="r1", replicas=2),)
    foreign_one = workload("r1", annotations={RESTARTED: "1"})

    assert foreign.changes(Observed(revisions=(stored("r2"),), workload=foreign_one, replica_sets=sets), "r2") == {}
    assert foreign.changes(Observed(revisions=(stored("r1"),), workload=foreign_one, replica_sets=sets), "r1") == {}
    assert foreign.changes(Observed(revisions=(stored("r1"),)), "r1") == {}


def test_what_is_stored_is_left_to_the_apply() -> None:
    kept = stored("r1")
    template = {"metadata": {"annotations": {"ours": "1"}}}
    observed = Observed(
        revisions=(type(kept)(revision="r1", version="v1", created=kept.created, template=template),),
        workload=workload("r2", annotations={"ours": "2"}),
        replica_sets=(ReplicaSet(revision="r1", replicas=1, annotations={"ours": "1"}),),
    )

    assert foreign.changes(observed, "r1") == {}
