"""Models, pods and Deployments for the tests: everything has a default, so a test names only what matters to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cosyvoice_operator import api, api_status, assessment, judgement, revision
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.assessment import Assessment, Hold
from cosyvoice_operator.observed import Container, Ended, Observed, Pod, StoredRevision, Workload
from cosyvoice_operator.pin import Wanted
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.termination import Termination

START = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
POLICY = Policy(worker_image="worker:1", device="cpu")


def raw_model(name: str = "narrator", **spec: Any) -> dict[str, Any]:
    """A CosyVoiceModel as a user would write it, with what the API server adds to its metadata."""
    wanted = {"version": "v1", "source": {"uri": "pvc://voices/model"}, **spec}
    metadata = {"namespace": "speech", "name": name, "uid": "model-uid", "generation": 1, "resourceVersion": "7"}
    return {"apiVersion": "cosyvoice.dev/v1alpha1", "kind": "CosyVoiceModel", "metadata": metadata, "spec": wanted}


def model(status: Status | None = None, **spec: Any) -> Model:
    raw = raw_model(**spec)
    if status is not None:
        raw["status"] = api_status.encode_status(status)
    return api.parse(raw)


def target_of(asked: Model) -> str:
    """The revision that the model's spec asks for."""
    return revision.identity(asked.spec)


def stored(name: str, *, age: int = 0, version: str = "v1") -> StoredRevision:
    """A revision's ConfigMap that is `age` seconds old."""
    template = {"metadata": {"labels": {"cosyvoice.dev/revision": name}}}
    return StoredRevision(revision=name, version=version, created=START - timedelta(seconds=age), template=template)


def pod(revision: str, name: str = "narrator-a", **fields: Any) -> Pod:
    """A pod that has a node and nothing else yet."""
    defaults = {
        "created": START,
        "version": "v1",
        "node": "node1",
        "address": "10.0.0.1",
        "scheduled": START + timedelta(seconds=1),
    }
    return Pod(name=name, revision=revision, **{**defaults, **fields})


def staged_container(**said: Any) -> Container:
    """`stage` after it did its work."""
    return Container(ended=Ended(exit_code=0, reason="Completed", said=Termination(reason="Staged", **said)))


def ended_container(code: int, *, restarts: int = 0, kubelet: str = "Error", **said: Any) -> Container:
    """A container that ended with `code`; `kubelet` is the kubelet's word for it, `said` the worker's message."""
    ended = Ended(exit_code=code, reason=kubelet, finished_at=START + timedelta(seconds=9), said=Termination(**said))
    return Container(restarts=restarts, ended=ended)


def ready_pod(revision: str, name: str = "narrator-a", **fields: Any) -> Pod:
    defaults = {
        "ready": True,
        "ready_since": START + timedelta(seconds=20),
        "stage": staged_container(digest="sha256:00", bytes=1000, elapsed_seconds=0.5),
        "worker": Container(running=True),
    }
    return pod(revision, name, **{**defaults, **fields})


def workload(revision: str | None, replicas: int = 2, **fields: Any) -> Workload:
    return Workload(revision=revision, replicas=replicas, **fields)


def full(revision: str, replicas: int = 2) -> Workload:
    """A Deployment that is done: every replica updated, ready and available."""
    return workload(
        revision, replicas, total=replicas, updated=replicas, ready=replicas, available=replicas
    )  # fmt: skip


def serving(revision: str, replicas: int = 2, **fields: Any) -> Observed:
    """A model that serves `revision` at full count."""
    pods = tuple(ready_pod(revision, f"narrator-{index}") for index in range(replicas))
    defaults = {"revisions": (stored(revision),), "workload": full(revision, replicas), "pods": pods}
    return Observed(**{**defaults, **fields})


def assessed(asked: Model, observed: Observed, hold: Hold | None = None) -> Assessment:
    """What is told of the model whose spec is wanted, nothing being in quarantine."""
    target = target_of(asked)
    judged = judgement.judge(observed, target, asked.spec.rollout.progress_deadline_seconds, START)
    return assessment.assess(asked, observed, Wanted(revision=target, version=asked.spec.version), judged, hold=hold)


def flags(verdict: Assessment) -> str:
    """The initials of the conditions that hold: Ready, Progressing, Stalled, Degraded."""
    states = (verdict.ready, verdict.progressing, verdict.stalled, verdict.degraded)
    return "".join(initial for initial, holds in zip("RPSD", states, strict=True) if holds)
