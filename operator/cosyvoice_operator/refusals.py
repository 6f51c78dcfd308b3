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
    """`manifest` was refused with `message`; it is worth another try at `retry_at`.

    It holds for one generation of one model: a namesake made after that model was deleted begins at generation 1 again.
    """

    uid: str
    generation: int
    manifest: Object
    message: str
    retry_at: float

    def is_about(self, model: Model) -> bool:
        return (self.uid, self.generation) == (model.identity.uid, model.identity.generation)


class Refusals:
    """By model. `monotonic` is the clock, `patience` the seconds between two tries."""

    def __init__(self, cluster: Cluster, monotonic: Callable[[], float], patience: float) -> None:
        self._cluster = cluster
        self._monotonic = monotonic
        self._patience = patience
        self._refusals: dict[Key, tuple[Refusal, ...]] = {}

    def add(self, key: Key, model: Model, manifest: Object, error: RejectedError) -> None:
        """The API server refused `manifest`. What it refused before of this model stays refused."""
        message = f"{manifest['kind']} {manifest['metadata']['name']} is refused by the API server: {error.message}"
        retry_at = self._monotonic() + self._patience
        refusal = Refusal(model.identity.uid, model.identity.generation, manifest, message, retry_at)
        self._refusals[key] = (*self._refusals.get(key, ()), refusal)

    def is_refused(self, key: Key, manifest: Object) -> bool:
        """Whether exactly this object was refused, so that there is no use in sending it."""
        return any(refusal.manifest == manifest for refusal in self._refusals.get(key, ()))

    def forget(self, key: Key) -> None:
        """The model is gone."""
        self._refusals.pop(key, None)

    async def current(self, key: Key, model: Model) -> str | None:
        """Why the model's spec cannot be applied, as far as is known: the oldest reason that still stands."""
        known = [refusal for refusal in self._refusals.get(key, ()) if refusal.is_about(model)]
        left = [again for refusal in known if (again := await self._try_again(refusal)) is not None]
        if not left:
            self.forget(key)
            return None
        self._refusals[key] = tuple(left)
        return left[0].message

    async def _try_again(self, refusal: Refusal) -> Refusal | None:
        """The refusal as it stands now, after another try where it is time for one; None once it is over."""
        if self._monotonic() < refusal.retry_at:
            return refusal
        try:
            await self._cluster.apply(refusal.manifest, dry_run=True)
        except RejectedError:
            return replace(refusal, retry_at=self._monotonic() + self._patience)
        return None
