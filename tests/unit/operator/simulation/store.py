"""What the API server keeps: objects with versions and generations. An object is never changed, only replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from cosyvoice_operator import handlers, names

Object = dict[str, Any]

NAMESPACE = "speech"
MODEL = "narrator"

_WATCHED = {names.PLURAL, *(plural for _, _, plural in handlers.CHILDREN)}
_PLURALS = {
    names.KIND: names.PLURAL,
    "Deployment": "deployments",
    "Service": "services",
    "Pod": "pods",
    "ConfigMap": "configmaps",
    "PodDisruptionBudget": "poddisruptionbudgets",
}


def timestamp(time: datetime) -> str:
    """As Kubernetes writes times."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """The objects of one namespace. `notify` is called where the operator's watches would tell of a change."""

    def __init__(self, clock: Callable[[], datetime], notify: Callable[[], None]) -> None:
        self._clock = clock
        self._notify = notify
        self._objects: dict[str, dict[str, Object]] = defaultdict(dict)
        self.version = 0

    def get(self, kind: str, name: str) -> Object | None:
        """The object, or None."""
        return self._objects[kind].get(name)

    def all(self, kind: str) -> list[Object]:
        """Every object of a kind, the oldest first."""
        return list(self._objects[kind].values())

    def put(self, raw: Object) -> Object:
        """Make `raw` the newest version of its object. What says nothing new is no write, as on the real server."""
        kind, name = raw["kind"], raw["metadata"]["name"]
        before = self.get(kind, name)
        said = {field: value for field, value in raw["metadata"].items() if field != "resourceVersion"}
        if before is None:
            uid = f"{kind}-{self.version}"
            said |= {"uid": uid, "creationTimestamp": timestamp(self._clock()), "generation": 1}
        else:
            kept = before["metadata"]
            generation = kept["generation"] + (raw.get("spec") != before.get("spec"))
            said |= {"uid": kept["uid"], "creationTimestamp": kept["creationTimestamp"], "generation": generation}
            if {**raw, "metadata": {**said, "resourceVersion": kept["resourceVersion"]}} == before:
                return before
        self.version += 1
        stored = {**raw, "metadata": {**said, "resourceVersion": str(self.version)}}
        self._objects[kind][name] = stored
        self._tell(kind)
        return stored

    def remove(self, kind: str, name: str) -> None:
        """Remove the object, if there is one."""
        if self._objects[kind].pop(name, None) is not None:
            self.version += 1
            self._tell(kind)

    def children(self, kind: str, owner: Object | None) -> list[Object]:
        """The objects of `kind` that `owner` controls, the oldest first."""
        if owner is None:
            return []
        uid = owner["metadata"]["uid"]
        return [raw for raw in self._objects[kind].values() if owner_of(raw) == uid]

    def _tell(self, kind: str) -> None:
        if _PLURALS.get(kind) in _WATCHED:
            self._notify()


def owner_of(raw: Object) -> str | None:
    """The uid of the object's controller."""
    return next((owner["uid"] for owner in raw["metadata"].get("ownerReferences", ()) if owner.get("controller")), None)


def label_of(raw: Object, label: str) -> str:
    """The value of a label, "" where it is absent."""
    return str((raw["metadata"].get("labels") or {}).get(label, ""))
