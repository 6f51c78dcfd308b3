"""What a revision's weights are held to: the first digest that anyone told, and never one that is none."""

from __future__ import annotations

from dataclasses import replace

from cosyvoice_operator import pins
from cosyvoice_operator.observed import Live, Observed, Pod, WorkerStatus
from tests.unit.operator.builders import pod, ready_pod, staged_container, stored

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def staged_pod(digest: str, revision: str = "r1", **fields: object) -> Pod:
    return pod(revision, stage=staged_container(digest=digest), **fields)


def serving_pod(digest: str, revision: str = "r1", template: str = "r0") -> Pod:
    status = WorkerStatus(phase="Ready", revision=revision, digest=digest)
    return ready_pod(revision, template=template, status=status)


def test_nothing_is_known_before_anything_was_staged() -> None:
    assert pins.known(Observed(revisions=(stored("r1"),), pods=(pod("r1"),)), "r1") is None


def test_what_a_pod_staged_first_is_known() -> None:
    assert pins.known(Observed(pods=(staged_pod(ONE), staged_pod(TWO, name="b"))), "r1") == ONE


def test_what_was_written_down_outranks_what_pods_say() -> None:
    written = replace(stored("r1"), pin=TWO)
    live = Live(template="r0", current="r1", pins={"r1": TWO})

    assert pins.known(Observed(revisions=(written,), pods=(staged_pod(ONE),)), "r1") == TWO
    assert pins.known(Observed(lives=(live,), pods=(staged_pod(ONE),)), "r1") == TWO


def test_a_swapped_version_is_known_by_the_worker_that_serves_it_and_not_by_what_its_pod_staged() -> None:
    swapped = replace(serving_pod(TWO), stage=staged_container(digest=ONE))

    assert pins.known(Observed(pods=(swapped,)), "r1") == TWO


def test_a_pod_made_while_its_template_loads_something_else_tells_nothing_of_the_template() -> None:
    live = Live(template="r1", current="r2")

    assert pins.known(Observed(lives=(live,), pods=(staged_pod(ONE),)), "r1") is None
    assert pins.known(Observed(pods=(staged_pod(ONE, order="r2.1.5"),)), "r1") is None


def test_what_is_no_digest_is_never_written_down() -> None:
    for text in ("sha256:00", "", ONE + "\n", ONE.upper(), "md5:" + "1" * 64):
        assert pins.known(Observed(pods=(staged_pod(text),)), "r1") is None
