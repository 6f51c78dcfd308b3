"""Fixtures over the local cluster: the operator installed in it, and for each test a namespace with weights in it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev import deploy
from dev.audit import AuditLog
from dev.cluster import registry
from dev.cluster.plan import DEFAULT_NAME
from dev.demo import source, target
from dev.demo.target import Target
from dev.kubectl import Kubectl
from dev.playground import Playground


@pytest.fixture(scope="session")
def cluster() -> Target:
    """The local cluster, which `make test` brings up before the tests."""
    return target.find_local()


@pytest.fixture(scope="session")
def kubectl(cluster: Target) -> Kubectl:
    return cluster.kubectl


@pytest.fixture(scope="session")
def operator(cluster: Target) -> None:
    """The operator, installed as a user would, but with a short resync so that idleness can be observed soon."""
    cluster.kubectl.apply(
        *deploy.render(
            operator_image=cluster.operator_image, worker_image=cluster.worker_image, device="cpu", resync_seconds=2
        )
    )
    cluster.kubectl.run(
        "-n", deploy.NAMESPACE, "rollout", "status", "deployment/cosyvoice-operator", "--timeout=180s", timeout=200
    )


@pytest.fixture(scope="session")
def weights() -> Path:
    """A folder on the machine that becomes every namespace's claim `voices`; the small model is in it."""
    model, _recording = source.make_tiny(registry.default_cache() / "tests")
    return model.parent


@pytest.fixture(scope="session")
def tiny_path(weights: Path) -> str:
    """The small model's path inside the claim."""
    return source.TINY_NAME


@pytest.fixture
def playground(request: pytest.FixtureRequest, kubectl: Kubectl, operator: None, weights: Path) -> Iterator[Playground]:
    """A namespace of the test's own, removed afterwards."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:30].strip("-")
    place = Playground(kubectl, f"{words}-{secrets.token_hex(3)}", weights)
    place.create()
    yield place
    place.remove()


@pytest.fixture
def audit_log() -> AuditLog:
    """The API server's audit log, marked at the start of the test."""
    plan = registry.find(DEFAULT_NAME, registry.default_state_root())
    if plan is None:
        raise LookupError("the local cluster is down: `make cluster-up`")
    log = AuditLog(plan.audit_log)
    log.mark()
    return log
