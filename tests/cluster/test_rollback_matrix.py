"""Every fault by every way to roll out: nobody who listens loses a word, and what served is back by itself.

A model serves a good version under load; a bad one comes; the status names its fault and the model goes back; nothing
tries it again; then another good version rolls out. The pods that served are the same ones all the time.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cosyvoice_worker.faults.copy import Copy
from cosyvoice_worker.faults.files import digest_of
from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.staging.selection import select
from dev import deploy
from dev.audit import AuditLog
from dev.kubectl import Kubectl
from dev.playground import Playground
from dev.waiting import wait_for
from tests.cluster.served import Served

RESYNC_SECONDS = 2


@dataclass(frozen=True)
class Case:
    """A fault and what the status tells of it. `quick`: the strategy under which it belongs to the quick tests."""

    fault: str
    reason: Reason
    file: str | None = None
    tensor: str | None = None
    spec: dict[str, Any] = field(default_factory=dict)
    quick: str | None = None


CASES = [
    Case("truncated-file", Reason.TRUNCATED_FILE, file="flow.pt", quick="RollingUpdate"),
    Case("flipped-bit", Reason.DIGEST_MISMATCH),
    Case("lfs-pointer", Reason.LFS_POINTER, file="llm.pt"),
    Case("source-gone", Reason.SOURCE_UNREACHABLE, file=".", spec={"rollout": {"progressDeadlineSeconds": 15}}),
    Case("full-tmpfs", Reason.OUT_OF_SPACE, quick="HotSwap"),
    Case("missing-tensor", Reason.MISSING_TENSOR, file="flow.pt", tensor="encoder.after_norm.weight", quick="HotSwap"),
    Case("wrong-shape", Reason.SHAPE_MISMATCH, file="llm.pt", tensor="llm_embedding.weight"),
    Case("nan-weight", Reason.NON_FINITE_AUDIO, quick="RollingUpdate"),
    Case("silent-audio", Reason.SILENT_AUDIO, quick="HotSwap"),
    Case("crash-by-signal", Reason.ENGINE_DIED, quick="RollingUpdate"),
    Case("out-of-memory", Reason.OUT_OF_MEMORY, file="hift.pt"),
    Case("slow-load", Reason.LOAD_TIMEOUT, spec={"engine": {"loadTimeoutSeconds": 10}}),
    Case("hang-in-load", Reason.LOAD_TIMEOUT, spec={"engine": {"loadTimeoutSeconds": 20}}),
    Case("hang-in-warm-up", Reason.LOAD_TIMEOUT, spec={"engine": {"loadTimeoutSeconds": 20}}),
]
STRATEGIES = ("RollingUpdate", "HotSwap")
MATRIX = [
    pytest.param(
        strategy, case, id=f"{strategy}-{case.fault}", marks=() if case.quick == strategy else pytest.mark.long
    )
    for strategy in STRATEGIES
    for case in CASES
]


@pytest.fixture(scope="session")
def original_digest(weights: Path, tiny_path: str) -> str:
    """The digest of the model that the bad ones are copies of."""
    files = tuple(select(weights / tiny_path, boundary=Path("/")))
    return digest_of(Copy(good=files, directory=weights))


@pytest.fixture(scope="module")
def served_by(shared_playground: Playground, good_paths: tuple[str, ...]) -> Callable[[str], Served]:
    """The model that rolls out by the given strategy, serving a good version.

    None of its versions is the original of the bad ones: what a pod has staged it takes for what its digest says.
    """
    models = {
        strategy: Served(shared_playground, name=strategy.lower(), strategy=strategy, paths=good_paths[1:])
        for strategy in STRATEGIES
    }

    def serving(strategy: str) -> Served:
        models[strategy].ensure()
        return models[strategy]

    return serving


@pytest.mark.parametrize(("strategy", "case"), MATRIX)
def test_a_bad_version_costs_nobody_a_word(
    *,
    served_by: Callable[[str], Served],
    bad_path: Callable[[str], str],
    original_digest: str,
    audit_log: AuditLog,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    strategy: str,
    case: Case,
) -> None:
    model = served_by(strategy)
    before, good, pods = model.status(), model.version, model.pods()
    counted = rollbacks(model.playground.kubectl, case.reason)
    began = time.monotonic()

    with model.calls(tmp_path) as traffic:
        traffic.wait_for_version(good)
        apply_bad(model, case, bad_path(case.fault), original_digest)
        status = model.wait_reason("RolledBack")
        record_property("back_after_seconds", round(time.monotonic() - began, 1))

        check_told(status, case)
        check_events(model, case)
        assert rollbacks(model.playground.kubectl, case.reason) == counted + 1
        assert (status["activeVersion"], status["activeRevision"]) == (good, before["activeRevision"])
        assert model.pods().items() >= pods.items()
        wait_for("the bad version's pods to go", lambda: model.pods() == pods)
        check_not_tried_again(model, audit_log, status["targetRevision"])
        assert model.pods() == pods

        better = model.apply_good()
        model.playground.wait_ready(model.name)
        traffic.wait_for_version(better)

    replies = traffic.replies()
    record_property("seconds", round(time.monotonic() - began, 1))
    record_property("requests", len(replies))
    record_property("failed", sum(reply.error is not None for reply in replies))
    record_property("slowest", max(reply.seconds for reply in replies))
    record_property("reason", status["failures"][0]["reason"])
    model.check(traffic, good, better)


def apply_bad(model: Served, case: Case, path: str, digest: str) -> None:
    """Apply the model with the fault; `digest` is that of the model that the fault was made in."""
    source = {"source": {"uri": f"pvc://voices/{path}", "digest": digest}} if case.fault == "flipped-bit" else {}
    model.apply(f"bad-{case.fault}", path=path, **case.spec, **source)


def check_told(status: dict[str, Any], case: Case) -> None:
    """The status names the fault, and `kubectl wait` for the bad version cannot pass."""
    newest = status["failures"][0]
    assert (newest["version"], newest["revision"]) == (f"bad-{case.fault}", status["targetRevision"])
    assert (newest["reason"], newest.get("file"), newest.get("tensor")) == (case.reason, case.file, case.tensor)
    assert newest["node"] in {"node1", "node2"}
    assert newest["message"] in status["message"]
    entry = status["quarantine"][0]
    assert (entry["revision"], entry["version"], entry["reason"]) == (
        status["targetRevision"],
        f"bad-{case.fault}",
        case.reason,
    )
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert {kind: conditions[kind] for kind in ("Ready", "Available", "Progressing", "Degraded", "RolledBack")} == {
        "Ready": "False",
        "Available": "True",
        "Progressing": "False",
        "Degraded": "True",
        "RolledBack": "True",
    }


def check_events(model: Served, case: Case) -> None:
    """One event names the failure, and one says that the version is taken back, however often it was tried."""
    version = f"bad-{case.fault}"

    def told() -> list[tuple[str, int]]:
        found = [event for event in model.playground.events(model.name) if version in event["message"]]
        found = [event for event in found if event["reason"] in {"LoadFailed", "RolledBack"}]
        return sorted((event["reason"], event.get("count", 1)) for event in found)

    expected = [("LoadFailed", 1), ("RolledBack", 1)]
    wait_for(f"the events {expected}", lambda: told() == expected, timeout=10)  # sent after the status is written


def rollbacks(kubectl: Kubectl, reason: str) -> float:
    """How many rollbacks for `reason` the operator has counted."""
    pods = kubectl.get("pods", "-n", deploy.NAMESPACE, "-l", f"app.kubernetes.io/name={deploy.NAME}")["items"]
    (address,) = (pod["status"]["podIP"] for pod in pods if "deletionTimestamp" not in pod["metadata"])
    with urllib.request.urlopen(f"http://{address}:9090/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    name, label = "cosyvoice_operator_rollbacks_total{", f'reason="{reason}"}} '
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name) and label in line)


def check_not_tried_again(model: Served, audit_log: AuditLog, bad: str) -> None:
    """Neither the next three resyncs nor another number of replicas bring the bad version back."""
    audit_log.mark()
    time.sleep(3 * RESYNC_SECONDS + 1)
    assert model.writes(audit_log) == []

    scale(model, 2)
    wait_for("another pod", lambda: len(model.pods()) == 2)
    time.sleep(RESYNC_SECONDS)
    assert [write for write in model.writes(audit_log) if "deployments" not in write] == []
    assert bad not in {pod["metadata"]["labels"]["cosyvoice.dev/revision"] for pod in model.playground.pods(model.name)}
    scale(model, 1)
    wait_for("one pod", lambda: len(model.pods()) == 1)
    assert model.status()["activeVersion"] == model.version


def scale(model: Served, replicas: int) -> None:
    model.playground.run("scale", "cosyvoicemodel", model.name, f"--replicas={replicas}")
