"""The digest that a revision's weights are held to: what was staged of them first. Pure.

A user may name it in the spec; else whatever the first pod staged is written down, and from then on other bytes under
the same version fail instead of being served.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeGuard

from cosyvoice_operator.observed import Observed

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


def known(observed: Observed, revision: str) -> str | None:
    """The digest of `revision`, as first written down, or as the pods tell of it; None until one was staged."""
    return next((digest for digest in _told(observed, revision) if is_digest(digest)), None)


def is_digest(text: str | None) -> TypeGuard[str]:
    """Whether `text`, which a pod may have told, is one of a manifest."""
    return text is not None and _DIGEST.fullmatch(text) is not None


def _told(observed: Observed, revision: str) -> Iterator[str | None]:
    stored = observed.stored(revision)
    yield stored.pin if stored else None
    yield from (live.pins.get(revision) for live in observed.lives)
    for pod in observed.pods:
        if pod.status is not None and pod.status.revision == revision == pod.revision:
            yield pod.status.digest
        # What `stage` said is about what the pod was made for, unless it was made when something else was loaded.
        as_made = pod.carrier == revision == observed.loads(revision) and pod.order is None
        if as_made and pod.stage.succeeded and pod.stage.ended is not None:
            yield pod.stage.ended.said.digest
