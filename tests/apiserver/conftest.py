"""Fixtures: one API server for the session, with CRD and RBAC installed; a namespace and a reconciler for each test."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator

import pytest
import yaml

from cosyvoice_operator import cluster
from cosyvoice_operator.cluster import Cluster
from dev import deploy
from tests.apiserver.control_plane import ControlPlane, running
from tests.apiserver.world import World


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of the tests' own, made of the local cluster's binaries."""
    with running(tmp_path_factory.mktemp("control-plane")) as plane:
        objects = deploy.render(operator_image="operator:1", worker_image="worker:1")
        done = plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
        assert done.returncode == 0, done.stderr
        established = ("wait", "--for=condition=Established", "crd/cosyvoicemodels.cosyvoice.dev", "--timeout=30s")
        assert plane.kubectl(*established).returncode == 0
        while plane.kubectl("get", "cosyvoicemodels").returncode:  # established, and served a moment later
            time.sleep(0.2)
        yield plane


@pytest.fixture
def namespace(request: pytest.FixtureRequest, control_plane: ControlPlane) -> str:
    """A namespace of the test's own."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:30].strip("-")
    name = f"{words}-{secrets.token_hex(3)}"
    done = control_plane.kubectl("create", "namespace", name)
    assert done.returncode == 0, done.stderr
    return name


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """The API server as an administrator sees it."""
    async with cluster.connect(in_cluster=False, kubeconfig=str(control_plane.kubeconfig)) as api:
        yield api


@pytest.fixture
async def world(control_plane: ControlPlane, admin: Cluster, namespace: str) -> AsyncIterator[World]:
    """A namespace, an administrator in it, and a reconciler that runs under the operator's own RBAC."""
    async with cluster.connect(in_cluster=False, kubeconfig=str(control_plane.operator_kubeconfig)) as api:
        yield World(control_plane, admin, api, namespace)
