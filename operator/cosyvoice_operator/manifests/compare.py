"""Whether an object already is as we would apply it, so that nothing has to be sent.

Every field we would apply must be there with the same meaning; what others or the API server added does not matter.
A field that we stopped to apply cannot be told from a foreign one by looking, so each child carries the fingerprint of
what was applied last (`common.child`): a changed fingerprint makes it differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cosyvoice_operator import quantity

# Keys by which the API server merges lists (`listType: map`), the most telling first.
_KEYS = ("name", "mountPath", "containerPort", "port", "uid")

# Where the values are quantities, to be compared as such.
_QUANTITIES = frozenset({"requests", "limits", "sizeLimit"})


# Maps that belong to one owner as a whole (`mapType: atomic`): one entry more means something else.
_WHOLE = frozenset({"selector", "labelSelector", "nodeSelector"})

# Where the API server leaves out what is false.
_LEFT_OUT = frozenset({"paused"})


def is_applied(desired: object, live: object, *, quantities: bool = False) -> bool:
    """Whether `live` holds all of `desired`. `quantities`: the texts at this place are Kubernetes quantities."""
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(
            value == live.get(name)
            if name in _WHOLE
            else _field_is_applied(value, _live(live, name), quantities=quantities or name in _QUANTITIES)
            for name, value in desired.items()
        )
    if isinstance(desired, list):
        return isinstance(live, list) and _list_is_applied(desired, live)
    if type(desired) is type(live) and desired == live:
        return True
    return quantities and quantity.same(desired, live)


def _live(live: Mapping[str, Any], name: str) -> object:
    return live.get(name, False if name in _LEFT_OUT else None)


def _field_is_applied(desired: object, live: object, *, quantities: bool) -> bool:
    """Absent and empty are the same to the API server; false and 0 are not, it keeps them where they mean something."""
    if live is None:
        return desired in (None, "", {}, [])
    return is_applied(desired, live, quantities=quantities)


def _list_is_applied(desired: Sequence[Any], live: Sequence[Any]) -> bool:
    key = next((key for key in _KEYS if _identifies(key, desired)), None)
    if key is None or not all(isinstance(item, Mapping) for item in live):
        return len(desired) == len(live) and all(map(is_applied, desired, live))
    by_key = {item.get(key): item for item in live}
    return all(is_applied(item, by_key.get(item[key])) for item in desired)


def _identifies(key: str, items: Sequence[Any]) -> bool:
    """Whether every item has the key, each with a value of its own."""
    values = [item.get(key) for item in items if isinstance(item, Mapping)]
    texts = all(isinstance(value, str | int) for value in values)
    return texts and len(values) == len(items) and len(set(values)) == len(values)
