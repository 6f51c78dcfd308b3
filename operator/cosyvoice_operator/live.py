"""Live documents: what the pods of a template load instead of the revision that the template was made for. Pure.

Each is a whole model.json. `current` is proven: a pod that starts, for whatever reason, loads it. `candidate` is tried
by the one pod that was ordered to. A document may also hold a revision to the digest that was staged of it first: with
other bytes under the same version, a later staging fails instead of serving something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.observed import Live


def parse(template: str, data: Mapping[str, str]) -> Live | None:
    """The live ConfigMap of `template` with `data`; None where its current document cannot be read."""
    current, candidate = _decode(data.get(names.KEY_CURRENT)), _decode(data.get(names.KEY_CANDIDATE))
    if current is None:
        return None
    pins = {document["revision"]: _pin(document) for document in (candidate, current) if document is not None}
    return Live(
        template=template,
        current=current["revision"],
        candidate=candidate["revision"] if candidate is not None else None,
        pins={revision: pin for revision, pin in pins.items() if pin is not None},
    )


def document(config: str, digest: str | None) -> str | None:
    """`config`, a revision's model.json, held to `digest` unless the user named one. None where it cannot be read."""
    decoded = _decode(config)
    if decoded is None:
        return None
    if digest is not None and _pin(decoded) is None:
        decoded = {**decoded, "source": {**decoded["source"], "digest": digest}}
    return json.dumps(decoded, indent=2)


def pin_of(config: str) -> str | None:
    """The digest that `config`, a model.json, holds its weights to."""
    decoded = _decode(config)
    return None if decoded is None else _pin(decoded)


def _decode(text: str | None) -> dict[str, Any] | None:
    """The document, if it is one and names its revision and source."""
    try:
        decoded = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    usable = (
        isinstance(decoded, dict)
        and isinstance(decoded.get("revision"), str)
        and decoded["revision"] != ""
        and isinstance(decoded.get("source"), dict)
    )
    return decoded if usable else None


def _pin(document: Mapping[str, Any]) -> str | None:
    digest = document["source"].get("digest")
    return digest if isinstance(digest, str) else None
