"""The door to Kubernetes, with the interface of `cluster.Cluster`, onto a `Store`; and the faults of that door."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cosyvoice_operator import names
from cosyvoice_operator.errors import ConflictError, NotFoundError, UnavailableError
from tests.unit.operator.simulation.merging import applied, patched
from tests.unit.operator.simulation.store import Object, Store


class Crash(BaseException):
    """The operator is killed here. No handler of its own may see it."""


class Witness(Protocol):
    """Is told what the operator reads and writes, before it happens."""

    def on_model(self, raw: Object | None) -> None:
        """A pass read the model."""

    def on_write(self, verb: str, raw: Object) -> None:
        """The operator is about to write; `raw` is what it sends (for a delete: the object as it stands)."""

    def on_new_set(self, template: Object, sets: list[Object]) -> None:
        """The Deployment's controller makes a ReplicaSet of a template that none of `sets` has."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the write after `writes` more: the operator dies, or no answer comes; before or after it took
    effect."""

    writes: int
    after: bool
    crash: bool


class FakeCluster:
    """Requests of the operator. `fault` is used up by the write that it hits, `interruption` by the request.

    `after_write` is called once a write has taken effect, before the operator hears of it.
    """

    def __init__(
        self, store: Store, witness: Witness, log: Callable[[str], None], after_write: Callable[[], None]
    ) -> None:
        self._store = store
        self._after_write = after_write
        self._witness = witness
        self._log = log
        self._applied: dict[tuple[str, str], Object] = {}
        self.fault: Fault | None = None
        self.interruption: tuple[int, Callable[[], None]] | None = None  # requests until then, what happens
        self.writes = 0
        self.writing = False

    async def get(self, kind: str, _namespace: str, name: str) -> Object | None:
        self._request()
        found = self._store.get(kind, name)
        if kind == names.KIND:
            self._witness.on_model(found)
        return found

    async def list(
        self, kind: str, _namespace: str | None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Object]:
        self._request()
        found = self._store.all(kind)
        if labels is not None:
            label, _, value = labels.partition("=")
            found = [raw for raw in found if (raw["metadata"].get("labels") or {}).get(label) == value]
        if fields is not None:
            pod = fields.rpartition("involvedObject.name=")[2]
            found = [raw for raw in found if raw["involvedObject"]["name"] == pod]
        return found

    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        def act() -> None:
            key = (manifest["kind"], manifest["metadata"]["name"])
            live = self._store.get(*key)
            self._store.put(manifest if live is None else applied(live, self._applied.get(key), manifest))
            self._applied[key] = manifest

        if not dry_run:
            self._write("apply", manifest, act)

    async def overwrite(self, manifest: Object) -> None:
        await self.patch(manifest)

    async def patch(self, manifest: Object) -> None:
        live = self._store.get(manifest["kind"], manifest["metadata"]["name"])
        if live is None:
            raise NotFoundError("patch", 404, manifest["metadata"]["name"])
        self._write("patch", manifest, lambda: self._store.put(patched(live, manifest)))

    async def annotate(
        self,
        kind: str,
        _namespace: str,
        name: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        metadata = {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})}
        await self.patch({"kind": kind, "metadata": metadata})

    async def create(self, manifest: Object) -> Object:
        if self._store.get(manifest["kind"], manifest["metadata"]["name"]) is not None:
            raise ConflictError("post", 409, "exists")
        stored = manifest["kind"] != "Event"  # they are for people; the log has them
        self._write("create", manifest, lambda: self._store.put(manifest) if stored else None)
        return manifest

    async def replace(self, manifest: Object, *, subresource: str | None = None) -> Object:
        self._request()
        live = self._store.get(manifest["kind"], manifest["metadata"]["name"])
        if live is None:
            raise NotFoundError("put", 404, manifest["metadata"]["name"])
        for field in ("uid", "resourceVersion"):
            if manifest["metadata"].get(field, live["metadata"][field]) != live["metadata"][field]:
                raise ConflictError("put", 409, f"{manifest['metadata']['name']} was modified")
        newest = manifest if subresource is None else {**live, subresource: manifest[subresource]}
        self._write("replace", manifest, lambda: self._store.put(newest), counted=False)
        return newest

    async def delete(self, kind: str, _namespace: str, name: str) -> None:
        live = self._store.get(kind, name)
        if live is not None:
            self._write("delete", live, lambda: self._store.remove(kind, name))

    async def proxy(self, *_: Any, **__: Any) -> bytes:
        raise UnavailableError("proxy", 0, "workers are asked directly here")

    def _request(self) -> None:
        """One request begins: whatever is to happen at this moment happens."""
        if self.interruption is None:
            return
        requests, happen = self.interruption
        self.interruption = (requests - 1, happen) if requests else None
        if not requests:
            happen()

    def _write(self, verb: str, raw: Object, act: Callable[[], object], *, counted: bool = True) -> None:
        if counted:
            self._request()
        fault, self.fault = self.fault, None
        if fault is not None and fault.writes:
            self.fault, fault = Fault(fault.writes - 1, fault.after, fault.crash), None
        what = f"{verb} {raw['kind']} {_title(raw)}"
        if fault is not None and not fault.after:
            self._log(f"operator: {what}: cut off before it took effect")
            raise _error(fault, what)
        self._witness.on_write(verb, raw)
        self.writes += 1
        self._log(f"operator: {what}")
        self.writing = True
        act()
        self.writing = False
        self._after_write()
        if fault is not None:
            self._log(f"operator: {what}: cut off after it took effect")
            raise _error(fault, what)


def _title(raw: Object) -> str:
    """What tells a write from others. An event's name is chosen by chance."""
    name: str = raw["reason"] if raw["kind"] == "Event" else raw["metadata"]["name"]
    if raw["kind"] == "Pod":
        return f"{name}: {' '.join(raw['metadata']['annotations'].values())}"
    if names.KEY_CURRENT in raw.get("data", {}):
        return f"{name}: {', '.join(f'{key} {_revision(text)}' for key, text in raw['data'].items())}"
    if raw["kind"] == names.KIND:
        return f"{name}: {raw['status'].get('reason')}"
    return name


def _revision(document: str) -> str:
    revision: str = json.loads(document)["revision"]
    return revision


def _error(fault: Fault, what: str) -> BaseException:
    return Crash(what) if fault.crash else UnavailableError(what, 0, "no answer")
