"""`cosyvoice-worker stage --follow`: versions that are ordered of a running pod are staged beside the one it serves."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cosyvoice_worker.staging import locks
from cosyvoice_worker.staging.follow import POLL_SECONDS
from cosyvoice_worker.staging.selection import select
from cosyvoice_worker.staging.space import needed_for
from tests.unit.staging.conftest import model_json
from tests.unit.staging.following import NEW, NEXT, OLD, Pod


@pytest.fixture
def pod(model: Path, tmp_path: Path) -> Iterator[Pod]:
    """It has staged OLD; its sidecar is not started yet."""
    pod = Pod(model, tmp_path)
    pod.stage()
    yield pod
    pod.close()


def begin_slowly(pod: Pod, *options: str) -> None:
    """The sidecar is in the middle of staging v2, as the first order says."""
    pod.slow_down("v2")
    pod.document("candidate.json", NEW, "v2")
    pod.order(f"{NEW}.1")
    pod.start(*options)
    pod.until_copying()


def test_an_ordered_version_is_staged_beside_the_one_that_is_served(pod: Pod) -> None:
    pod.document("candidate.json", NEW, "v2")
    pod.start()

    pod.order(f"{NEW}.1")

    assert pod.until_answered(f"{NEW}.1") == {
        "schema": 1,
        "order": f"{NEW}.1",
        "revision": NEW,
        "state": "Staged",
        "outcome": None,
        "room": False,
        "tries": 1,
    }
    staged = pod.staged(NEW)
    assert staged is not None
    assert (staged / "flow.pt").read_bytes() == (pod.claim / "v2" / "flow.pt").read_bytes()
    document = pod.root / "revisions" / f"{NEW}.model.json"
    assert document.read_text() == (pod.config / "candidate.json").read_text()
    assert pod.versions() == {staged, pod.staged(OLD)}
    assert pod.starts_with() == OLD


def test_an_order_that_is_written_again_is_the_same_order(pod: Pod) -> None:
    pod.document("candidate.json", NEW, "v2")
    pod.order(f"{NEW}.1")
    pod.start()
    pod.until_answered(f"{NEW}.1")

    pod.order(f"{NEW}.1.again")
    time.sleep(2 * POLL_SECONDS)
    pod.document("candidate.json", NEXT, "v3")
    pod.order(f"{NEXT}.1")
    pod.until_answered(f"{NEXT}.1")
    _, log = pod.end()

    assert [line["order"] for line in log if line.get("state") == "Staged"] == [f"{NEW}.1", f"{NEXT}.1"]


def test_a_bad_version_is_answered_with_what_is_wrong_and_leaves_nothing(pod: Pod) -> None:
    (pod.claim / "v2" / "llm.pt").write_bytes((pod.claim / "v1" / "llm.pt").read_bytes()[:1000])
    pod.document("candidate.json", NEW, "v2")
    before = pod.names()
    pod.start()

    pod.order(f"{NEW}.1")
    answer = pod.until_answered(f"{NEW}.1")

    assert (answer["state"], answer["room"]) == ("Failed", False)
    outcome = answer["outcome"]
    assert (outcome["reason"], outcome["phase"], outcome["file"]) == ("TruncatedFile", "Stage", "llm.pt")
    assert outcome["retryable"] is False
    assert pod.names() == before | {"orders"}
    assert pod.staged(NEW) is None


def test_a_repaired_version_is_staged_by_the_next_attempt(pod: Pod) -> None:
    (pod.claim / "v2" / "llm.pt").rename(pod.claim / "llm.pt")
    pod.document("candidate.json", NEW, "v2")
    pod.order(f"{NEW}.1")
    pod.start()
    assert pod.until_answered(f"{NEW}.1")["outcome"]["reason"] == "MissingFile"

    (pod.claim / "llm.pt").rename(pod.claim / "v2" / "llm.pt")
    pod.order(f"{NEW}.2")

    assert pod.until_answered(f"{NEW}.2")["state"] == "Staged"
    assert pod.answer(f"{NEW}.1") == {}


def test_a_document_that_cannot_be_used_is_a_failed_order(pod: Pod) -> None:
    (pod.config / "candidate.json").write_text(f'{{"revision": "{NEW}"}}')
    pod.start()

    pod.order(f"{NEW}.1")

    assert pod.until_answered(f"{NEW}.1")["outcome"]["reason"] == "InvalidConfig"


def test_a_document_that_names_two_revisions_stages_neither(pod: Pod) -> None:
    pod.start()
    document = json.dumps(model_json(pod.claim / "v2", OLD))
    (pod.config / "candidate.json").write_text(f'{{"revision": "{NEW}", {document[1:]}')
    pod.order(f"{NEW}.1")

    answer = pod.until_answered(f"{NEW}.1")

    assert (answer["state"], answer["outcome"]["reason"]) == ("Failed", "InvalidConfig")
    assert answer["outcome"]["message"].endswith(f"names two revisions, {NEW} and {OLD}")
    assert pod.staged(NEW) is None
    assert len(pod.versions()) == 1


def test_an_order_waits_for_its_document(pod: Pod) -> None:
    pod.order(f"{NEW}.1")
    pod.start()
    pod.document("candidate.json", NEXT, "v3")
    pod.order(f"{NEXT}.1")
    pod.until_answered(f"{NEXT}.1")

    pod.order(f"{NEW}.1")
    pod.document("candidate.json", NEW, "v2")

    assert pod.until_answered(f"{NEW}.1")["state"] == "Staged"


def test_another_order_ends_what_is_being_staged(pod: Pod) -> None:
    begin_slowly(pod)

    pod.document("candidate.json", NEXT, "v3")
    pod.order(f"{NEXT}.1")

    assert pod.until_answered(f"{NEXT}.1")["state"] == "Staged"
    assert pod.answer(f"{NEW}.1") == {}
    assert pod.versions() == {pod.staged(OLD), pod.staged(NEXT)}
    assert "incoming.partial" not in pod.names()


def test_an_order_that_is_taken_back_ends_what_is_being_staged(pod: Pod) -> None:
    begin_slowly(pod)

    pod.order("")

    pod.until(lambda: "incoming.partial" not in pod.names() and pod.answer(f"{NEW}.1") == {})
    assert pod.versions() == {pod.staged(OLD)}


def test_what_the_pod_serves_already_needs_no_source(pod: Pod) -> None:
    (pod.claim / "v1").rename(pod.claim / "gone")
    pod.start()

    pod.order(f"{OLD}.1")

    assert pod.until_answered(f"{OLD}.1")["state"] == "Staged"


def test_a_version_that_nobody_needs_makes_room_for_the_next(pod: Pod) -> None:
    pod.document("candidate.json", NEW, "v2")
    pod.order(f"{NEW}.1")
    pod.start()
    pod.until_answered(f"{NEW}.1")

    pod.document("current.json", NEW, "v2")
    pod.document("candidate.json", NEXT, "v3")
    pod.order(f"{NEXT}.1")
    pod.until_answered(f"{NEXT}.1")

    # Nothing maps NEW in this test, and yet it stays: a container that starts now would load it.
    assert pod.versions() == {pod.staged(NEW), pod.staged(NEXT)}
    assert pod.starts_with() == NEW
    assert pod.staged(OLD) is None


def test_a_version_that_is_about_to_be_let_go_is_waited_for(pod: Pod) -> None:
    pod.document("candidate.json", NEW, "v2")
    pod.order(f"{NEW}.1")
    pod.start()
    pod.until_answered(f"{NEW}.1")
    old = pod.staged(OLD)
    assert old is not None
    pod.size_limit = sum(path.stat().st_size for path in pod.root.rglob("*") if path.is_file()) + 600_000
    lock = locks.shared(old)

    pod.document("current.json", NEW, "v2")
    pod.document("candidate.json", NEXT, "v3")
    pod.order(f"{NEXT}.1")
    pod.until(lambda: pod.answer(f"{NEXT}.1").get("state") == "Staging")
    assert old.is_dir()
    os.close(lock)

    assert pod.until_answered(f"{NEXT}.1")["state"] == "Staged"
    assert not old.exists()


@pytest.mark.parametrize(("beyond", "room"), [(0, True), (-1, False)])
def test_too_little_room_is_the_versions_fault_only_where_it_would_not_fit_alone(
    pod: Pod, beyond: int, room: bool
) -> None:
    needed = needed_for([file.size for file in select(pod.claim / "v2", pod.claim)])
    pod.size_limit = needed + beyond
    pod.document("candidate.json", NEW, "v2")
    pod.start()

    pod.order(f"{NEW}.1")
    answer = pod.until_answered(f"{NEW}.1")

    assert (answer["state"], answer["room"], answer["outcome"]["reason"]) == ("Failed", room, "OutOfSpace")
    assert " of versions in use, spec.staging.sizeLimit is " in answer["outcome"]["message"]


def test_a_source_that_gives_no_byte_is_given_up(pod: Pod) -> None:
    begin_slowly(pod, "--stall-seconds", "1")

    os.kill(pod.child(), signal.SIGSTOP)
    answer = pod.until_answered(f"{NEW}.1")

    outcome = answer["outcome"]
    assert (outcome["reason"], outcome["retryable"], answer["room"]) == ("SourceUnreachable", True, False)
    assert outcome["file"] == "CosyVoice-BlankEN/added_tokens.json"
    assert outcome["message"].startswith("no progress for 1 s while copying CosyVoice-BlankEN/added_tokens.json (")
    assert "incoming.partial" not in pod.names()


def test_sigterm_ends_it_and_what_it_was_staging(pod: Pod) -> None:
    begin_slowly(pod)

    code, _ = pod.end(signal.SIGTERM)

    assert code == 0
    assert pod.last_words()["reason"] == "Completed"
    assert "incoming.partial" not in pod.names()


def test_a_killed_sidecar_takes_its_child_along_and_its_successor_goes_on(pod: Pod) -> None:
    begin_slowly(pod)
    pod.end(signal.SIGKILL)
    (pod.claim / "v2" / "CosyVoice-BlankEN" / "added_tokens.json").unlink()

    pod.start()
    answer = pod.until_answered(f"{NEW}.1")

    assert (answer["state"], answer["tries"]) == ("Staged", 2)
    assert "incoming.partial" not in pod.names()


def test_a_sidecar_that_is_killed_each_time_gives_the_order_up(pod: Pod) -> None:
    pod.slow_down("v2")
    pod.document("candidate.json", NEW, "v2")
    pod.order(f"{NEW}.1")
    for tries in (1, 2, 3):
        pod.start()
        pod.until(lambda tries=tries: pod.answer(f"{NEW}.1").get("tries") == tries)
        pod.end(signal.SIGKILL)

    pod.start()
    answer = pod.until_answered(f"{NEW}.1")

    assert (answer["state"], answer["room"], answer["outcome"]["reason"]) == ("Failed", True, "OutOfMemory")


@pytest.mark.parametrize("milliseconds", range(20, 400, 40))
def test_killed_at_any_moment_it_goes_on_right(pod: Pod, milliseconds: int) -> None:
    pod.document("candidate.json", NEW, "v2")
    pod.order(f"{NEW}.1")
    pod.start()
    time.sleep(milliseconds / 1000)
    pod.end(signal.SIGKILL)

    pod.start()

    assert pod.until_answered(f"{NEW}.1")["state"] == "Staged"
    staged = pod.staged(NEW)
    assert staged is not None
    assert (staged / "flow.pt").read_bytes() == (pod.claim / "v2" / "flow.pt").read_bytes()
    assert pod.versions() == {staged, pod.staged(OLD)}
