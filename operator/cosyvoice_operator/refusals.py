"""Remembers what the API server refused, so that it is told to the user and not sent over and over.

Only the API server knows everything it refuses (a request over its limit, a webhook's opinion). What it refused is
left alone until the spec changes; from time to time it is tried again without effect (a dry run).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cosyvoice_operator.api import Model
from cosyvoice_operator.cluster import Cluster, Object
from cosyvoice_operator.errors import RejectedError

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """`manifest` of a model's `generation` was refused with `message`; it is worth another try at `retry_at`."""

    generation: int
    manifest: Object
    message: str
    retry_at: float


class Refusals:
    """By model. `monotonic` is the clock, `patience` the seconds between two tries."""

    def __init__(self, cluster: Cluster, monotonic: Callable[[], float], patience: float) -> None:
        self._cluster = cluster
        self._monotonic = monotonic
        self._patience = patience
        self._refusals: dict[Key, Refusal] = {}

    def add(self, key: Key, model: Model, manifest: Object, error: RejectedError) -> None:
        """The API server refused `manifest`."""
        message = f"{manifest['kind']} {manifest['metadata']['name']} is refused by the API server: {error.message}"
        retry_at = self._monotonic() + self._patience
        self._refusals[key] = Refusal(model.identity.generation, manifest, message, retry_at)

    def is_refused(self, key: Key, manifest: Object) -> bool:
        """Whether exactly this object was refused, so that there is no use in sending it."""
        refusal = self._refusals.get(key)
        return refusal is not None and refusal.manifest == manifest

    def forget(self, key: Key) -> None:
        """The model is gone."""
        self._refusals.pop(key, None)

    async def current(self, key: Key, model: Model) -> str | None:
        """Why the model's spec cannot be applied, as far as is known."""
        refusal = self._refusals.get(key)
        if refusal is None or refusal.generation != model.identity.generation:
            self.forget(key)
            return None
        if self._monotonic() < refusal.retry_at:
            return refusal.message
        try:
            await self._cluster.apply(refusal.manifest, dry_run=True)
        except RejectedError:
            self._refusals[key] = replace(refusal, retry_at=self._monotonic() + self._patience)
            return refusal.message
        self.forget(key)
        return None
