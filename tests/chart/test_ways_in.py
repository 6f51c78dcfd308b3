"""The examples that lead to a model from outside: valid, and to the Service that there is."""

from __future__ import annotations

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from cosyvoice_operator.api import parse
from cosyvoice_operator.manifests.service import service
from cosyvoice_worker.server.limits import Limits
from dev.helm import CHART

EXAMPLES = CHART.parents[1] / "examples"
INGRESS, ROUTE = ("ingress.yaml", "httproute.yaml")
# The fields of HTTPRoute v1 that are used, and what the Gateway API calls a duration (GEP-2257).
ROUTE_FIELDS = {
    "spec": {"parentRefs", "hostnames", "rules"},
    "parentRefs": {"name", "namespace", "sectionName"},
    "rules": {"matches", "timeouts", "backendRefs"},
    "matches": {"path"},
    "path": {"type", "value"},
    "timeouts": {"request", "backendRequest"},
    "backendRefs": {"name", "port"},
}
DURATION = re.compile(r"([0-9]{1,5}(h|m|s|ms)){1,4}")


def example(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    return document


def the_service() -> tuple[str, int]:
    """Name and port of the Service that the operator makes of the smallest example."""
    model = example("narrator.yaml")
    model["metadata"] |= {"namespace": "speech", "uid": "a", "generation": 1, "resourceVersion": "1"}
    made = service(parse(model))
    return made["metadata"]["name"], made["spec"]["ports"][0]["port"]


@pytest.mark.parametrize("kubernetes", [f"1.{minor}" for minor in range(31, 38)])
def test_the_ingress_is_valid_to_the_letter_on_every_kubernetes(kubernetes: str) -> None:
    kubernetes_validate.validate(example(INGRESS), kubernetes, strict=True)


def test_the_ingress_leads_to_the_service() -> None:
    (rule,) = example(INGRESS)["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    backend = path["backend"]["service"]

    assert (backend["name"], backend["port"]["number"]) == the_service()


def test_the_ingress_waits_longer_than_a_request_may_take() -> None:
    annotations = example(INGRESS)["metadata"]["annotations"]

    for what in ("read", "send"):
        assert int(annotations[f"nginx.ingress.kubernetes.io/proxy-{what}-timeout"]) > Limits().request_seconds


def unknown_fields(where: str, value: Any) -> list[str]:
    """What is not among ROUTE_FIELDS."""
    if isinstance(value, list):
        return [found for one in value for found in unknown_fields(where, one)]
    if not isinstance(value, dict):
        return []
    known = ROUTE_FIELDS[where]
    here = [f"{where}.{name}" for name in value if name not in known]
    return [*here, *(found for name in known & {*value} for found in unknown_fields(name, value[name]))]


def test_the_route_has_fields_that_the_gateway_api_knows() -> None:
    route = example(ROUTE)

    assert (route["apiVersion"], route["kind"]) == ("gateway.networking.k8s.io/v1", "HTTPRoute")
    assert unknown_fields("spec", route["spec"]) == []


def test_the_route_leads_to_the_service_and_waits_long_enough() -> None:
    (rule,) = example(ROUTE)["spec"]["rules"]
    (backend,) = rule["backendRefs"]

    assert (backend["name"], backend["port"]) == the_service()
    for duration in rule["timeouts"].values():
        assert DURATION.fullmatch(duration)
        assert int(duration.removesuffix("s")) > Limits().request_seconds
