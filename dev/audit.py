"""Reads the API server's audit log: which requests were made, by whom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

MUTATING = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Request:
    """One finished request. `received` and `completed` are seconds since 1970, to the microsecond."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    received: float
    completed: float
    allowed: bool = True  # what the authorizer said; admission may have refused later

    @property
    def mutating(self) -> bool:
        return self.verb in MUTATING

    @property
    def kind(self) -> str:
        """The resource, with its subresource where there is one: `deployments`, `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        return f"{self.user} {self.verb} {self.kind} {self.namespace}/{self.name} -> {self.code}"


@dataclass
class AuditLog:
    """A position in the log: `since_mark` yields what finished after the last `mark`."""

    path: Path
    offset: int = 0

    def mark(self) -> None:
        """Forget everything until now."""
        self.offset = self.path.stat().st_size

    def since_mark(self) -> Iterator[Request]:
        """Finished requests after the mark, oldest first."""
        with self.path.open("rb") as log:
            log.seek(self.offset)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if event.get("stage") == "ResponseComplete" and "objectRef" in event:
                    yield _request(event)


def _request(event: dict[str, object]) -> Request:
    reference = event["objectRef"]
    user = event["user"]
    response, notes = event.get("responseStatus"), event.get("annotations")
    if not isinstance(reference, dict) or not isinstance(user, dict):
        raise ValueError(f"not an audit event: {event!r}")
    return Request(
        user=str(user.get("username", "")),
        verb=str(event["verb"]),
        group=str(reference.get("apiGroup", "")),
        resource=str(reference.get("resource", "")),
        subresource=str(reference.get("subresource", "")),
        namespace=str(reference.get("namespace", "")),
        name=str(reference.get("name", "")),
        code=int(response.get("code", 0)) if isinstance(response, dict) else 0,
        received=_seconds(event["requestReceivedTimestamp"]),
        completed=_seconds(event["stageTimestamp"]),
        allowed=not isinstance(notes, dict) or notes.get("authorization.k8s.io/decision") != "forbid",
    )


def _seconds(stamp: object) -> float:
    return datetime.fromisoformat(str(stamp)).timestamp()
