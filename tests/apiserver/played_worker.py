"""Plays what runs in a pod: it loads the document that it finds, and another one when it is ordered to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Object

Message = Mapping[str, Any]


class PlayedWorker:
    """`documents` are all that the pod sees, by key: what it was made for, and what its live ConfigMap has.

    `failures`: for a version, the termination message of the engine that tries to load it.
    """

    def __init__(self, documents: Mapping[str, Object], failures: Mapping[str, Message]) -> None:
        self.document = documents.get(names.KEY_CURRENT, documents[names.KEY_CONFIG])
        self._failures = failures
        self._swap: dict[str, Any] | None = None

    @property
    def failure(self) -> Message | None:
        """What it says of the document that it started with, where it cannot load that."""
        return self._failures.get(self.document["version"])

    @property
    def staged(self) -> Message:
        """What the staging of its document says. Another version is other bytes."""
        digest = f"sha256:{hashlib.sha256(self.document['version'].encode()).hexdigest()}"
        return {"schema": 1, "reason": "Staged", "digest": digest, "bytes": 57000000, "elapsedSeconds": 0.4}

    def follow(self, annotation: str, documents: Mapping[str, Object]) -> bool:
        """Go one step further with the order in `annotation`. Whether there was one to go."""
        revision, attempt = annotation.split(".")[:2]
        order = f"{revision}.{attempt}"
        if self._swap is None or self._swap["order"] != order:
            state = "Switched" if revision == self.document["revision"] else "Loading"
            self._swap = {"order": order, "revision": revision, "state": state, "phase": "Map"}
            return True
        if self._swap["state"] != "Loading":
            return False
        wanted = next((found for found in documents.values() if found["revision"] == revision), None)
        if wanted is None:  # the mount shows another moment than the order's
            return False
        failure = self._failures.get(wanted["version"])
        if failure is None:
            self.document = wanted
        self._swap |= {"state": "Switched" if failure is None else "Failed", "phase": None, "failure": failure}
        return True

    def status(self, *, ready: bool, memory_high: Message) -> bytes:
        """The body of GET /status. `memory_high` is what it reads back, where its document wishes for that."""
        high = self.document.get("memoryHighBytes")
        said = {
            "schema": names.STATUS_SCHEMA,
            "version": self.document["version"],
            "revision": self.document["revision"],
            "digest": self.staged["digest"],
            "phase": "Ready" if ready else "Map",
            "ready": ready,
            "load": {"import": 2.0, "map": 0.2, "build": 0.3, "warmUp": 4.0, "total": 6.5} if ready else {},
            "swap": self._swap,
            "memoryHigh": None if high is None else {"wanted": high, **memory_high},
        }
        return json.dumps(said).encode()
