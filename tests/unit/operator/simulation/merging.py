"""Server-side apply and merge patch, as far as the operator's manifests need them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

# By what the API server tells the entries of a list apart; a list that is not here is replaced as a whole.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "ports": "name",
    "ownerReferences": "uid",
}
_WHOLE = frozenset({"selector", "nodeSelector", "labelSelector"})  # maps that belong to one owner


def applied(live: object, before: object, manifest: object, field: str = "") -> Any:
    """`live` after who applied `before` applies `manifest`: what it no longer says goes, others' fields stay."""
    if isinstance(live, dict) and isinstance(manifest, dict) and field not in _WHOLE:
        owned = before if isinstance(before, dict) else {}
        merged = {name: value for name, value in live.items() if name in manifest or name not in owned}
        for name, value in manifest.items():
            merged[name] = applied(live[name], owned.get(name), value, name) if name in live else value
        return merged
    if isinstance(live, list) and isinstance(manifest, list) and (key := _KEYS.get(field)):
        return _applied_list(live, before if isinstance(before, list) else [], manifest, key)
    return manifest


def _applied_list(live: list[Any], before: list[Any], manifest: list[Any], key: str) -> list[Any]:
    old, owned = ({entry.get(key): entry for entry in entries} for entries in (live, before))
    ours = [
        applied(old[entry[key]], owned.get(entry[key]), entry) if entry[key] in old else entry for entry in manifest
    ]
    said = {entry[key] for entry in manifest}
    return [*ours, *(entry for name, entry in old.items() if name not in said and name not in owned)]


def patched(live: object, patch: object) -> Any:
    """`live` after a JSON merge patch: maps are merged, null removes, everything else is replaced."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = patched(merged.get(name), value)
    return merged
