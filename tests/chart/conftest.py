"""Fixtures: the pinned Helm, and what the chart renders to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dev import helm
from dev.helm import Helm

NAMESPACE = "cosyvoice-system"
RELEASE = "cosyvoice"

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]


@pytest.fixture(scope="session")
def chart_helm() -> Helm:
    """Helm without a cluster: it renders and lints."""
    return helm.find()


@pytest.fixture(scope="session")
def helm3() -> Helm:
    """The Helm before it."""
    return helm.find_helm3()


@pytest.fixture(scope="session")
def render(chart_helm: Helm) -> Render:
    """`render(values, *flags, release=…)`: the objects of the chart with these values."""

    def rendered(values: dict[str, Any] | None = None, *flags: str, release: str = RELEASE) -> Objects:
        return chart_helm.template(release, NAMESPACE, values, *flags)

    return rendered


def only(objects: Objects, kind: str, name: str | None = None) -> dict[str, Any]:
    """The one object of that kind, and name if given."""
    (found,) = [one for one in objects if one["kind"] == kind and name in (None, one["metadata"]["name"])]
    return found
