"""Reading a CosyVoiceModel, also one that a lax CRD or a human hand let through."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator import api, api_status
from cosyvoice_operator.api_spec import Spec
from cosyvoice_operator.api_status import Condition, Load, Status
from cosyvoice_operator.errors import InvalidSpecError
from tests.unit.operator.builders import raw_model


def test_fields_that_are_absent_have_their_defaults() -> None:
    spec = api.parse(raw_model()).spec

    assert spec == Spec(version="v1", source=spec.source)
    assert (spec.worker.replicas, spec.staging.size_limit, spec.engine.fallback_to_cpu) == (2, "8Gi", False)


def test_fields_are_read_by_their_names_on_the_wire() -> None:
    engine = {"fallbackToCPU": True, "loadTimeoutSeconds": 7, "warmUp": {"maxSeconds": 2}}

    spec = api.parse(raw_model(engine=engine)).spec

    assert (spec.engine.fallback_to_cpu, spec.engine.load_timeout_seconds, spec.engine.warm_up.max_seconds) == (
        True,
        7,
        2.0,
    )


def test_fields_of_a_newer_crd_are_not_in_the_way() -> None:
    assert api.parse(raw_model(engine={"batching": {"size": 4}})).spec == api.parse(raw_model()).spec


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"version": 7}, "spec"),
        ({"worker": {"replicas": "many"}}, "spec"),
        ({"staging": {"sizeLimit": "1e1000"}}, "spec.staging.sizeLimit"),
        ({"staging": {"sizeLimit": "8Ei"}}, "spec.staging.sizeLimit"),  # would come back as 9223372036854775807
        ({"worker": {"resources": {"limits": {"memory": "x"}}}}, "spec.worker.resources.limits[memory]"),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        api.parse(raw_model(**spec))

    assert refused.value.field == field


def test_a_status_survives_the_way_through_the_api_server() -> None:
    condition = Condition(
        type="Ready", status="True", reason="Ready", message="", observed_generation=3, last_transition_time="2026"
    )
    status = Status(
        observed_generation=3, ready="2/2", load=Load(revision="r", pod="p", import_=1.0), conditions=(condition,)
    )

    encoded = api_status.encode_status(status)

    assert encoded["load"] == {"revision": "r", "pod": "p", "import": 1.0}
    assert api_status.parse_status({"status": encoded}) == status


@pytest.mark.parametrize("status", [None, {}, {"ready": 7}, {"conditions": "none"}, {"failures": [{}]}])
def test_a_status_that_is_not_ours_counts_as_none(status: Any) -> None:
    assert api_status.parse_status({"status": status}) == Status()


def test_a_condition_that_was_never_set_is_not_true() -> None:
    assert not Status().is_true("Ready")


def test_annotations_too_long_to_be_repeated_in_a_status_are_told_apart_all_the_same() -> None:
    def read(value: str) -> tuple[str | None, str | None]:
        raw = raw_model()
        raw["metadata"]["annotations"] = {"cosyvoice.dev/retry": value, "cosyvoice.dev/rollback-to": value}
        model = api.parse(raw)
        return model.retry, model.rollback_to

    assert read("once more") == ("once more", "once more")
    assert read("") == (None, None)
    long, longer = read("x" * 200_000), read("x" * 200_001)
    assert long != longer
    assert max(len(value or "") for value in long) <= api.MAX_ANNOTATION
