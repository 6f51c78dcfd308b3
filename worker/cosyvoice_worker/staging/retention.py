"""Which staged versions a running pod needs, and letting go of the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from cosyvoice_worker import documents
from cosyvoice_worker.names import CANDIDATE_CONFIG
from cosyvoice_worker.staging.orders import Order
from cosyvoice_worker.staging.pointer import Staged, find_pointer, find_start_pointer, write_start_pointer
from cosyvoice_worker.staging.store import Store

# The version before stays for a while: a rollback then needs no source.
KEEP_SECONDS = 600.0
LOOK_SECONDS = 10.0

log = logging.getLogger(__name__)


class Retention:
    """Of a pod whose model.json is `config` and whose tmpfs is `root`; `clock` gives seconds."""

    def __init__(self, config: Path, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._root = root
        self._store = Store(root)
        self._unneeded_since: dict[str, float] = {}
        self._clock = clock
        self._looked_at = clock()

    def is_current(self, revision: str) -> bool:
        """Whether a container that starts now is to load `revision`."""
        return documents.revision_in(documents.current(str(self._config))) == revision

    def is_staged(self, revision: str) -> bool:
        """Whether the version of `revision` is there, whole."""
        return self._version_of(revision) is not None

    def kept(self, ordered: str | None) -> frozenset[str]:
        """The versions that must stay: of the current document, of the candidate, of the `ordered` revision, and what
        a container starts with while the current one is not staged. Once it is, `staged.json` points to it.
        """
        current = documents.revision_in(documents.current(str(self._config)))
        candidate = documents.revision_in(str(self._config.with_name(CANDIDATE_CONFIG)))
        pointer = None if current is None else find_pointer(self._root, current)
        start = find_start_pointer(self._root)
        if pointer is not None and pointer != start and self._version_of(current) is not None:
            write_start_pointer(self._root, pointer)
            start = pointer
        revisions = (current, candidate, ordered, None if start is None else start.revision)
        return frozenset(name for revision in revisions if (name := self._version_of(revision)) is not None)

    def let_go(self, order: Order | None) -> None:
        """Remove what has not been needed for KEEP_SECONDS and is mapped by nobody. Looks every LOOK_SECONDS."""
        now = self._clock()
        if now - self._looked_at < LOOK_SECONDS or not self._root.is_dir():
            return
        self._looked_at = now
        kept = self.kept(None if order is None else order.revision)
        unneeded = [version.name for version in self._store.versions() if version.name not in kept]
        self._unneeded_since = {name: self._unneeded_since.get(name, now) for name in unneeded}
        old = {name for name, since in self._unneeded_since.items() if now - since >= KEEP_SECONDS}
        if old:
            with self._store.lock():
                self._store.evict(keep={version.name for version in self._store.versions()} - old)

    def _version_of(self, revision: str | None) -> str | None:
        """The name of the complete version that `revision` points to."""
        staged: Staged | None = None if revision is None else find_pointer(self._root, revision)
        if staged is None or self._store.manifest_of(staged.directory) is None:
            return None
        return staged.directory
