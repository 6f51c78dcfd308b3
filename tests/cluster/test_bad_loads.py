"""Faults that a second try may not have: the pods are tried again, and the status says why they were not ready."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from cosyvoice_worker.outcome import Reason
from dev.playground import Playground
from dev.waiting import wait_for
from tests.cluster.failing import NO_PREVIOUS_VERSION, NOTHING_TO_GO_BACK_TO, condition_statuses, status_with_a_failure

pytestmark = pytest.mark.long

HANG_IN_WARM_UP = """
import json, os, signal, time, urllib.request
while True:
    status = json.load(urllib.request.urlopen("http://127.0.0.1:8081/status"))
    if status["phase"] == "WarmUp":
        os.kill(status["engine"]["pid"], signal.SIGSTOP)
        break
    time.sleep(0.1)
"""


@dataclass(frozen=True)
class Case:
    """A fault of the kit, and a pattern of how the status tells it."""

    fault: str
    reason: Reason
    message: str
    spec: dict[str, Any] = field(default_factory=dict)


CASES = [
    Case(
        "full-tmpfs",
        Reason.OUT_OF_SPACE,
        r"the files need 10486\d\d\.\d MiB, spec\.staging\.sizeLimit is 512\.0 MiB: set it to at least 10486\d\dMi "
        r"\(expected \d+ bytes, actual 536870912 bytes, {place}\)",
    ),
    Case(
        "out-of-memory",
        Reason.OUT_OF_MEMORY,
        r"loading hift\.pt \(\d+ bytes\) asks for more memory than is to be had: raise the memory limit of the worker "
        r"container, or copy the file again if it should not need so much \({place}\)",
    ),
    Case(
        "crash-by-signal",
        Reason.ENGINE_DIED,
        r"the engine process was killed in phase Map after \d+\.\d s by SIGSEGV \({place}\)",
    ),
    Case(
        "hang-in-load",
        Reason.LOAD_TIMEOUT,
        r"the model was not loaded within 30 s: it is still in phase Map; the engine was killed "
        r"\(expected at most 30 s, actual 30\.\d s, {place}\)",
        {"engine": {"loadTimeoutSeconds": 30}},
    ),
    Case(
        "slow-load",
        Reason.LOAD_TIMEOUT,
        r"the model was not loaded within 1 s: it is still in phase (Import|Map); the engine was killed "
        r"\(expected at most 1 s, actual \d\.\d s, {place}\)",
        {"engine": {"loadTimeoutSeconds": 1}},
    ),
]
PLACE = r"pod [a-z0-9-]+, node node[12]"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_a_fault_that_may_pass_is_told_and_tried_again(
    shared_playground: Playground, bad_path: Callable[[str], str], case: Case
) -> None:
    shared_playground.apply_model(case.fault, path=bad_path(case.fault), **case.spec)

    status = status_with_a_failure(shared_playground, case.fault)

    check_told(status, case.reason, case.message)
    assert condition_statuses(status)["Ready"] == "False"


def test_a_flipped_bit_is_told_by_the_digest(
    shared_playground: Playground, bad_path: Callable[[str], str], tiny_path: str
) -> None:
    shared_playground.apply_model("whole", path=tiny_path, worker={"replicas": 1})
    try:
        staged = wait_for("the digest", lambda: shared_playground.model("whole").get("status", {}).get("staged"))
    finally:
        shared_playground.run("delete", "cosyvoicemodel", "whole", "--wait=false")

    source = {"uri": f"pvc://voices/{bad_path('flipped-bit')}", "digest": staged["digest"]}
    shared_playground.apply_model("flipped", path="", source=source)
    status = status_with_a_failure(shared_playground, "flipped")

    (failure,) = status["failures"]
    assert (failure["reason"], failure["expected"]) == ("DigestMismatch", staged["digest"])
    assert failure["actual"] != staged["digest"]
    assert failure["message"].startswith(
        f"the files at {source['uri']} are not those of spec.source.digest: restore them, or set the digest to "
        f"{failure['actual']} if they are meant (expected {staged['digest']}, pod "
    )


def test_a_warm_up_that_hangs_is_ended_by_the_circuit_breaker(shared_playground: Playground, tiny_path: str) -> None:
    warm_up = {"texts": ["Hello, this is a long warm-up."] * 16, "maxSeconds": 30}
    shared_playground.apply_model("hanging", path=tiny_path, engine={"loadTimeoutSeconds": 60, "warmUp": warm_up})
    wait_for("a running worker", lambda: shared_playground.pods("hanging") and running(shared_playground, "hanging"))
    shared_playground.run("exec", "deploy/hanging", "-c", "worker", "--", "python3", "-c", HANG_IN_WARM_UP)

    status = status_with_a_failure(shared_playground, "hanging")

    check_told(
        status,
        Reason.LOAD_TIMEOUT,
        r"the model was not loaded within 60 s: it is still in phase WarmUp; the engine was killed "
        r"\(expected at most 60 s, actual 60\.\d s, {place}\)",
    )


def check_told(status: dict[str, Any], reason: Reason, pattern: str) -> None:
    """The newest failure matches; the status says the same, and while there are tries left, how many."""
    newest = status["failures"][0]
    assert newest["reason"] == reason
    assert status["reason"] in {reason, NO_PREVIOUS_VERSION}
    assert re.fullmatch(pattern.replace("{place}", PLACE), newest["message"]), newest["message"]
    told = re.fullmatch(
        rf"v1: (?P<message>.*?)(; trying again \([0-3] of 3\)|{NOTHING_TO_GO_BACK_TO})?", status["message"]
    )
    assert told is not None
    assert told["message"] == newest["message"]


def running(playground: Playground, name: str) -> bool:
    """Whether the worker container of the model's only pod runs."""
    (pod,) = playground.pods(name)
    return any("running" in container["state"] for container in pod["status"].get("containerStatuses", []))
