"""Whether a live object already is as we would apply it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator.manifests.compare import is_applied


@pytest.mark.parametrize(
    ("desired", "live"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {"b": "c"}}, {"a": {"b": "c", "d": "e"}}),
        ({"limits": {"memory": "8192Mi"}}, {"limits": {"memory": "8Gi"}}),
        ({"requests": {"cpu": "0.5"}}, {"requests": {"cpu": "500m"}}),
        ({"emptyDir": {"sizeLimit": "1024Ki"}}, {"emptyDir": {"sizeLimit": "1Mi"}}),
        ({"annotations": {}}, {}),
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}),
        ({"x": None}, {}),
        ({"containers": [{"name": "worker"}]}, {"containers": [{"name": "sidecar"}, {"name": "worker", "image": "i"}]}),
        ({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]},
         {"volumeMounts": [{"name": "v", "mountPath": "/b"}, {"name": "v", "mountPath": "/a", "readOnly": True}]}),
        ({"drop": ["ALL"]}, {"drop": ["ALL"]}),
        ({"a": [{"name": {}}]}, {"a": [{"name": {}}]}),
        ({"paused": False}, {}),
    ],
)  # fmt: skip
def test_what_the_api_server_or_others_add_or_respell_is_no_difference(desired: Any, live: Any) -> None:
    assert is_applied(desired, live)


@pytest.mark.parametrize(
    ("desired", "live"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        ({"a": 1}, None),
        ({"a": {"b": 1}}, {"a": "b"}),
        ({"a": [1]}, {"a": 1}),
        ({"a": True}, {"a": 1}),
        ({"a": False}, {}),
        ({"paused": False}, {"paused": True}),
        ({"a": 0}, {}),
        ({"limits": {"memory": "8Gi"}}, {"limits": {"memory": "8G"}}),
        ({"limits": {"memory": "8Gi"}}, {"limits": {}}),
        ({"name": "1"}, {"name": "1000m"}),  # not a quantity, though it looks like one
        ({"drop": ["ALL"]}, {"drop": ["ALL", "NET_RAW"]}),
        ({"args": ["stage", "serve"]}, {"args": ["serve", "stage"]}),
        ({"containers": [{"name": "worker", "image": "a"}]}, {"containers": [{"name": "worker", "image": "b"}]}),
        ({"containers": [{"name": "worker"}]}, {"containers": [{"name": "other"}]}),
        ({"tolerations": [{"operator": "Exists"}]}, {"tolerations": [{"operator": "Exists"}, {"key": "a"}]}),
        ({"selector": {"a": "b"}}, {"selector": {"a": "b", "c": "d"}}),
        ({"selector": {"matchLabels": {"a": "b"}}}, {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": []}}),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b", "c": "d"}}),
        ({"nodeSelector": {"a": "b"}}, {}),
    ],
)
def test_a_field_of_ours_that_is_gone_or_different_is_one(desired: Any, live: Any) -> None:
    assert not is_applied(desired, live)


names = st.sampled_from(["name", "spec", "limits", "labels", "image", "env"])
scalars = st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "8Gi", "500m"])
values = st.recursive(
    scalars, lambda inner: st.dictionaries(names, inner, max_size=3) | st.lists(inner, max_size=3), max_leaves=12
)
objects = st.dictionaries(names, values, max_size=4)


@given(objects)
def test_an_object_is_applied_to_itself(desired: dict[str, Any]) -> None:
    assert is_applied(desired, desired)


@given(objects, objects)
def test_what_others_add_never_makes_a_difference(desired: dict[str, Any], added: dict[str, Any]) -> None:
    assert is_applied(desired, _merge(added, desired))


def _merge(base: Any, over: Any) -> Any:
    """`over` laid on `base`, map by map, as server-side apply does for fields of other managers."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: _merge(base.get(key), value) for key, value in over.items()}}
    return over
