"""Fixtures over the local cluster: the operator installed in it, and for each test a namespace with weights in it."""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cosyvoice_worker.faults.kit import FAULTS, make_bad
from dev import deploy
from dev.audit import AuditLog
from dev.cluster import registry
from dev.cluster.plan import DEFAULT_NAME
from dev.demo import source, target
from dev.demo.target import Target
from dev.kubectl import Kubectl
from dev.models import tiny
from dev.playground import Playground


@pytest.fixture(scope="session")
def cluster() -> Target:
    """The local cluster, which `make test` brings up before the tests."""
    return target.find_local()


@pytest.fixture(scope="session")
def kubectl(cluster: Target) -> Kubectl:
    return cluster.kubectl


@pytest.fixture(scope="session")
def operator(cluster: Target, weights: Path) -> None:
    """The operator, installed as a user would, but with a short resync so that idleness can be observed soon.

    Sources may be directories of the nodes: what Pod Security says to that is among the tests.
    """
    cluster.kubectl.apply(
        *deploy.render(
            operator_image=cluster.operator_image,
            worker_image=cluster.worker_image,
            device="cpu",
            resync_seconds=2,
            allow_host_path=str(weights),
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


@pytest.fixture(scope="session")
def good_paths(weights: Path, tiny_path: str) -> tuple[str, str, str]:
    """The paths inside the claim of small models that all speak differently."""
    second, third = (f"{tiny_path}-{take}" for take in tiny.OTHER_TAKES)
    for path, take in zip((second, third), tiny.OTHER_TAKES, strict=True):
        if not (weights / path / "hift.pt").exists():
            tiny.write(weights / path, take=take)
    return tiny_path, second, third


@pytest.fixture
def playground(request: pytest.FixtureRequest, kubectl: Kubectl, operator: None, weights: Path) -> Iterator[Playground]:
    """A namespace of the test's own, removed afterwards."""
    with namespace_for(request.node.name, kubectl, weights) as place:
        yield place


@pytest.fixture(scope="module")
def shared_playground(
    request: pytest.FixtureRequest, kubectl: Kubectl, operator: None, weights: Path
) -> Iterator[Playground]:
    """A namespace for all tests of a module, which share what is in it or clean up after themselves."""
    with namespace_for(Path(request.node.name).stem, kubectl, weights) as place:
        yield place


@contextlib.contextmanager
def namespace_for(name: str, kubectl: Kubectl, weights: Path) -> Iterator[Playground]:
    """A namespace whose name reminds of `name`, while the context lasts."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower())[:30].strip("-")
    place = Playground(kubectl, f"{words}-{secrets.token_hex(3)}", weights)
    place.create()
    yield place
    place.remove()


@pytest.fixture(scope="session")
def bad_path(weights: Path, tiny_path: str) -> Callable[[str], str]:
    """The path inside the claim of a copy of the small model that has the given fault; made when first asked for."""
    made: dict[str, str] = {}

    def path_of(fault: str) -> str:
        if fault not in made:
            made[fault] = f"bad/{fault}"
            shutil.rmtree(weights / made[fault], ignore_errors=True)
            make_bad(FAULTS[fault], weights / tiny_path, weights / made[fault])
        return made[fault]

    return path_of


@pytest.fixture
def audit_log() -> AuditLog:
    """The API server's audit log, marked at the start of the test."""
    return marked_log()


@pytest.fixture(scope="session", autouse=True)
def session_log(cluster: Target) -> AuditLog:
    """The audit log, marked before the first of the cluster's tests."""
    return marked_log()


def marked_log() -> AuditLog:
    """The API server's audit log, from now on."""
    plan = registry.find(DEFAULT_NAME, registry.default_state_root())
    if plan is None:
        raise LookupError("the local cluster is down: `make cluster-up`")
    log = AuditLog(plan.audit_log)
    log.mark()
    return log
