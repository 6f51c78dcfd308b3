"""Which versions a pod keeps, and when it lets go of the others."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import Phase
from cosyvoice_worker.settings import parse_settings
from cosyvoice_worker.staging import locks
from cosyvoice_worker.staging.orders import Order
from cosyvoice_worker.staging.pointer import find_pointer, find_start_pointer
from cosyvoice_worker.staging.retention import KEEP_SECONDS, LOOK_SECONDS, Retention
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.task import Task
from tests.unit.staging.conftest import model_json

OLD, NEW, NEXT = "aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"


class Pod:
    """Its documents, its tmpfs and a clock."""

    def __init__(self, model: Path, root: Path, folder: Path) -> None:
        self.model, self.root = model, root
        self.config = folder / "model.json"
        self.now = 0.0
        self.document("model.json", OLD)
        self.retention = Retention(self.config, root, clock=lambda: self.now)

    def document(self, name: str, revision: str) -> None:
        self.config.with_name(name).write_text(json.dumps(model_json(self.model, revision)))

    def stage(self, revision: str, *, at_start: bool = False) -> str:
        """Another version for each revision; the name of its directory."""
        (self.model / "cosyvoice2.yaml").write_text(revision)
        raw = json.dumps(model_json(self.model, revision)).encode()
        keep = frozenset(path.name for path in self.root.iterdir()) if self.root.is_dir() else frozenset()
        settings = parse_settings(raw, Phase.STAGE)
        task = Task(settings=settings, document=raw, boundary=self.model.parent, at_start=at_start, keep=keep)
        return stage(task, self.root).directory

    def after(self, seconds: float, order: Order | None = None) -> set[str]:
        """The versions that are there when so much time has passed."""
        for _ in range(int(seconds / LOOK_SECONDS)):
            self.now += LOOK_SECONDS
            self.retention.let_go(order)
        return {path.name for path in self.root.iterdir() if len(path.name) == 64}


@pytest.fixture
def pod(model: Path, root: Path, tmp_path: Path) -> Pod:
    return Pod(model, root, tmp_path)


def test_without_orders_a_pod_keeps_what_it_started_with(pod: Pod) -> None:
    old = pod.stage(OLD, at_start=True)

    assert pod.after(2 * KEEP_SECONDS) == {old}


def test_a_candidate_and_an_ordered_version_are_kept(pod: Pod) -> None:
    versions = {pod.stage(OLD, at_start=True), pod.stage(NEW), pod.stage(NEXT)}
    pod.document("candidate.json", NEW)

    assert pod.after(2 * KEEP_SECONDS, Order(NEXT, 1)) == versions


def test_the_version_before_stays_for_a_while(pod: Pod) -> None:
    old, new = pod.stage(OLD, at_start=True), pod.stage(NEW)
    pod.document("current.json", NEW)

    assert pod.after(KEEP_SECONDS) == {old, new}
    assert pod.after(LOOK_SECONDS) == {new}
    assert find_pointer(pod.root, OLD) is None


def test_a_version_that_is_needed_again_is_counted_anew(pod: Pod) -> None:
    versions = {pod.stage(OLD, at_start=True), pod.stage(NEW)}
    pod.document("current.json", NEW)
    pod.after(KEEP_SECONDS)

    pod.document("candidate.json", OLD)
    pod.after(LOOK_SECONDS)
    (pod.config.with_name("candidate.json")).unlink()

    assert pod.after(KEEP_SECONDS) == versions


def test_a_version_in_use_stays_as_long_as_it_is(pod: Pod) -> None:
    old, new = pod.stage(OLD, at_start=True), pod.stage(NEW)
    pod.document("current.json", NEW)
    lock = locks.shared(pod.root / old)

    assert pod.after(2 * KEEP_SECONDS) == {old, new}
    os.close(lock)
    assert pod.after(LOOK_SECONDS) == {new}


def test_what_the_pod_started_with_stays_until_the_current_version_is_staged(pod: Pod) -> None:
    old = pod.stage(OLD, at_start=True)
    pod.document("current.json", NEW)

    assert pod.after(2 * KEEP_SECONDS) == {old}

    new = pod.stage(NEW)
    pod.after(LOOK_SECONDS)
    start = find_start_pointer(pod.root)
    assert start is not None
    assert (start.revision, start.directory) == (NEW, new)


def test_a_damaged_version_is_not_taken_for_a_staged_one(pod: Pod) -> None:
    old = pod.stage(OLD, at_start=True)

    (pod.root / old / "llm.pt").unlink()

    assert not pod.retention.is_staged(OLD)
    assert pod.retention.kept(None) == frozenset()
