"""What operator and worker must agree on though neither may import the other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cosyvoice_operator import api, failures, memory_high, order, revision, termination, workerstatus
from cosyvoice_operator import names as operator
from cosyvoice_operator.manifests.config import model_config
from cosyvoice_operator.manifests.containers import PRE_STOP_SECONDS
from cosyvoice_operator.manifests.template import TERMINATION_GRACE_SECONDS
from cosyvoice_operator.revision import Policy
from cosyvoice_worker import names as worker
from cosyvoice_worker import outcome
from cosyvoice_worker import settings as worker_settings
from cosyvoice_worker.engine import working_set
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.staging import orders
from tests.unit.operator.builders import ended_container, pod

SHARED_NAMES = (
    "CONFIG_PATH",
    "VOICES_CONFIG_PATH",
    "API_KEYS_PATH",
    "WEIGHTS_ROOT",
    "SOURCE_ROOT",
    "TERMINATION_LOG",
    "API_PORT",
    "ADMIN_PORT",
    "AGENT_MARK",
    "CONFIG_SCHEMA",
    "STATUS_SCHEMA",
    "TERMINATION_SCHEMA",
)


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_both_sides_hold_the_same_names(name: str) -> None:
    assert getattr(operator, name) == getattr(worker, name)


def test_both_sides_name_the_live_documents_and_the_order_alike() -> None:
    assert (operator.KEY_CURRENT, operator.KEY_CANDIDATE, operator.KEY_SWAP) == (
        worker.CURRENT_CONFIG,
        worker.CANDIDATE_CONFIG,
        worker.SWAP_ORDER,
    )


@pytest.mark.parametrize("attempt", [0, 1, 999_999_999])
def test_the_worker_reads_the_orders_that_the_operator_gives(attempt: int) -> None:
    given = order.Order(revision="3f9a1c0b7d", attempt=attempt, given=datetime(2026, 11, 30, tzinfo=UTC))

    read = orders.parse(given.text)

    assert read is not None
    assert (read.revision, read.attempt, read.name) == ("3f9a1c0b7d", attempt, given.name)


def test_both_sides_know_the_same_reasons_and_exit_codes() -> None:
    assert {reason.value: code for reason, code in outcome.EXIT_CODES.items()} == operator.WORKER_EXIT_CODES
    assert outcome.RETRYABLE_EXIT_CODES == operator.RETRYABLE_EXIT_CODES


@pytest.mark.parametrize("reason", list(outcome.Reason))
def test_the_operator_understands_every_outcome(reason: outcome.Reason) -> None:
    written = outcome.Outcome(
        reason=reason, phase=outcome.Phase.MAP, message="why", file="llm.pt", digest="sha256:00", bytes=5
    ).to_json()

    read = termination.parse(written)

    assert (read.reason, read.file, read.message, read.bytes) == (reason.value, "llm.pt", "why", 5)


def test_retryable_means_the_same_to_both() -> None:
    for reason in outcome.Reason:
        told = outcome.Outcome(reason=reason, phase=outcome.Phase.MAP, message="")
        if told.exit_code:
            failure = failures.of_pod(pod("r1", worker=ended_container(told.exit_code, reason=reason.value)))
            assert failure is not None
            assert (failure.verdict is failures.Verdict.FATAL) == (not told.retryable)
            assert failure.reason == reason.value


SPECS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "a directory of the node": {"source": {"uri": "hostpath:///srv/model"}},
    "everything": {
        "source": {"uri": "pvc://voices/a/b", "digest": "sha256:" + "a" * 64},
        "staging": {"sizeLimit": "1500Mi", "verify": "Always"},
        "engine": {
            "device": "cuda",
            "dtype": "bfloat16",
            "loadTimeoutSeconds": 33,
            "preload": False,
            "fallbackToCPU": True,
            "recycle": {"maxRequests": 100, "maxMemoryGrowth": "1.5Gi"},
            "warmUp": {"texts": ["One.", "Two."], "voice": "ann", "maxSeconds": 2},
        },
        "worker": {"memoryHigh": "7.5Gi"},
    },
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_the_worker_accepts_the_configuration_that_the_operator_writes(spec: dict[str, Any], tmp_path: Path) -> None:
    raw = {
        "metadata": {"namespace": "speech", "name": "narrator", "uid": "u"},
        "spec": {"version": "v1", "source": {"uri": "pvc://voices/model"}, **spec},
    }
    model = api.parse(raw)
    policy = Policy(worker_image="w", allowed_host_paths=("/srv",))
    written = model_config(model.identity, revision.identity(model.spec), revision.resolve(model.spec, policy))
    path = tmp_path / "model.json"
    path.write_text(json.dumps(written))

    read = worker_settings.read_settings(path, outcome.Phase.STAGE)

    assert (read.namespace, read.model, read.version, read.revision) == (
        "speech",
        "narrator",
        "v1",
        written["revision"],
    )
    asked = model.spec.engine.recycle
    assert read.engine.recycle.max_requests == asked.max_requests
    assert read.engine.recycle.max_memory_growth_bytes == (1_610_612_736 if asked.max_memory_growth else None)
    assert read.memory_high_bytes == (8_053_063_680 if model.spec.worker.memory_high else None)
    assert read.staging.size_limit_bytes == written["staging"]["sizeLimitBytes"]


def test_the_operator_knows_every_phase_of_the_workers_status() -> None:
    documented = "Start|Import|Map|Build|WarmUp|Ready|Failed"
    assert "|".join(workerstatus.PHASES) == documented
    assert documented in (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize("part", ["FRONT_BYTES", "PYTORCH_BYTES", "SPEECH_BYTES", "HEADROOM_BYTES"])
def test_both_sides_reckon_with_the_same_memory(part: str) -> None:
    assert getattr(memory_high, part) == getattr(working_set, part)


def test_a_pod_gets_longer_to_end_than_its_worker_takes_to_drain() -> None:
    limits = Limits()

    assert PRE_STOP_SECONDS + limits.drain_seconds + limits.kill_seconds <= TERMINATION_GRACE_SECONDS
