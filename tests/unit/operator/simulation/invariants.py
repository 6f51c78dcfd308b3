"""What must hold at every write of the operator, whatever happens around it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cosyvoice_operator import api, names, revision
from tests.unit.operator.simulation.broken import BrokenInvariantError
from tests.unit.operator.simulation.deployments import is_active
from tests.unit.operator.simulation.fates import EXTERNAL, WORKING
from tests.unit.operator.simulation.store import MODEL, Object, label_of, owner_of
from tests.unit.operator.simulation.swap_rules import SwapRules

if TYPE_CHECKING:
    from tests.unit.operator.simulation.world import World

_HELD = frozenset({"Paused", "InvalidSpec", "NameConflict", "WaitingForDeletion"})


class Invariants:
    """Watches the operator's writes in a world, and keeps its own books of what was condemned and what was stored."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._model: Object | None = None  # as the current pass read it
        self._ready: dict[str, int] = {}  # pods by revision, at that moment
        self._templates: dict[str, str] = {}  # by revision, of the stored ones
        self._condemned: dict[str, Object] = {}  # the latest entry of each revision in status.quarantine
        self._by_hand: list[Object] = []  # pod specs that somebody wrote into the Deployment
        self._uid: str | None = None
        self._swaps = SwapRules(world, self._check_quarantine)

    def on_model(self, raw: Object | None) -> None:
        self._model = raw
        self._ready = self._ready_now()
        if raw is not None and raw["metadata"]["uid"] != self._uid:
            self._uid = raw["metadata"]["uid"]
            self._swaps.proven.clear()
            self._templates, self._condemned = {}, {}

    def on_write(self, verb: str, raw: Object) -> None:
        kind = raw["kind"]
        if verb == "delete":
            self._deleted(raw)
        elif kind == "Deployment" and verb == "apply":
            self._deployed(raw)
        elif kind == "ConfigMap" and names.KEY_TEMPLATE in raw.get("data", {}):
            self._stored(raw)
        elif kind == "ConfigMap" and names.KEY_CURRENT in raw.get("data", {}):
            self._ready_now()
            self._swaps.on_live(raw)
        elif kind == "Pod":
            self._swaps.on_order(raw["metadata"]["name"], raw["metadata"]["annotations"][names.ANNOTATION_SWAP])
        elif kind == names.KIND:
            self._told(raw["status"])

    def on_new_set(self, template: Object, sets: list[Object]) -> None:
        """A revision whose pods are ready gets no second set of pods, unless someone changed the template by hand."""
        if self._world.tampered:
            self._world.tampered = False
            self._by_hand.append(template["spec"])
            return
        target = _revision(template)
        serving = [
            raw
            for raw in sets
            if label_of(raw, names.LABEL_REVISION) == target
            and raw["status"]["readyReplicas"]
            and raw["spec"]["template"]["spec"] not in self._by_hand
        ]
        if serving and target not in self._world.lost_revisions:
            ready = serving[0]["status"]["readyReplicas"]
            raise BrokenInvariantError(
                "applied as stored", f"{ready} ready pods of {target} are to be replaced by equals"
            )

    # ----- deletions --------------------------------------------------------------------------------------------------

    def _deleted(self, raw: Object) -> None:
        if raw["kind"] != "ConfigMap":
            raise BrokenInvariantError("only history is pruned", f"delete of {raw['kind']} {raw['metadata']['name']}")
        if names.KEY_TEMPLATE not in raw["data"]:
            self._live_deleted(raw)
            return
        gone = label_of(raw, names.LABEL_REVISION)
        if self._ready_now().get(gone):
            raise BrokenInvariantError("the serving revision stays", f"{gone} is deleted and serves")
        if who := [name for name, named in self._named().items() if gone in named]:
            raise BrokenInvariantError("a named revision stays", f"{gone} is deleted, and named by {', '.join(who)}")

    def _live_deleted(self, raw: Object) -> None:
        template = raw["metadata"]["name"].removeprefix(f"{MODEL}-").removesuffix("-live")
        using = [name for name in ("the Deployment", "a ReplicaSet", "a pod") if template in self._named()[name]]
        if using:
            raise BrokenInvariantError("a named revision stays", f"what {using[0]} of {template} loads is deleted")

    def _named(self) -> dict[str, set[str]]:
        """By what names it: the revisions that have to be kept."""
        store = self._world.store
        status = (self._world.model or {}).get("status", {})
        annotations = (self._model or {}).get("metadata", {}).get("annotations", {})
        deployment = store.get("Deployment", MODEL)
        fields = ("activeRevision", "targetRevision", "lastGoodRevision", "lastGoodTemplate")
        named: dict[str, set[str]] = {f"status.{field}": {status.get(field, "")} for field in fields}
        named["the pin"] = {annotations.get(f"{names.GROUP}/rollback-to", "")}
        named["the Deployment"] = {_revision(deployment["spec"]["template"])} if deployment else set()
        sets = store.children("ReplicaSet", deployment)  # those of a Deployment that is gone are collected
        named["a ReplicaSet"] = {label_of(raw, names.LABEL_REVISION) for raw in sets if raw["spec"]["replicas"]}
        owners = {raw["metadata"]["uid"] for raw in sets}
        alive = [raw for raw in store.all("Pod") if is_active(raw) and owner_of(raw) in owners]
        named["a pod"] = {label_of(raw, names.LABEL_REVISION) for raw in alive}
        if len(alive) == len(store.all("Pod")):
            named["a pod"] |= set(self._world.served())
        for template in named["the Deployment"] | named["a pod"]:
            named[f"the live documents of {template}"] = self._swaps.documents(template)
        return named

    # ----- what is stored and deployed --------------------------------------------------------------------------------

    def _stored(self, raw: Object) -> None:
        target, template = label_of(raw, names.LABEL_REVISION), raw["data"][names.KEY_TEMPLATE]
        there = self._world.store.get("ConfigMap", raw["metadata"]["name"])
        if there is not None and there["data"] != raw["data"]:
            raise BrokenInvariantError("a revision never changes", f"{target} is written over with something else")
        self._templates[target] = template

    def _deployed(self, raw: Object) -> None:
        store, model = self._world.store, self._model
        template = raw["spec"]["template"]
        target = _revision(template)
        stored = store.get("ConfigMap", names.revision_name(MODEL, target))
        known = self._templates.get(target)
        if stored is None or known is None:
            raise BrokenInvariantError("applied as stored", f"{target} is deployed and not stored")
        if json.loads(known) != template:
            raise BrokenInvariantError("applied as stored", f"{target} is deployed as something else than was stored")
        live = store.get("Deployment", MODEL)
        if model is None or (live is not None and _revision(live["spec"]["template"]) == target):
            return
        self._check_quarantine(target)
        self._check_told(model, target)

    def _check_quarantine(self, target: str) -> None:
        entry, model = self._condemned.get(target), self._model
        if entry is None or model is None or _is_asked_for(model, entry, target):
            return
        until = entry.get("retryAfter")
        if until is None or datetime.fromisoformat(until) > self._world.now:
            raise BrokenInvariantError("quarantine holds", f"{target} is deployed again: {entry.get('reason')}")

    def _check_told(self, model: Object, target: str) -> None:
        """The status that decides comes before the Deployment: a crash in between loses nothing."""
        status = (self._world.model or {}).get("status", {})
        wanted = _pin(model) or revision.identity(api.parse(model).spec)
        if target == wanted:
            told = status.get("targetRevision") == wanted
        else:
            quarantined = {entry["revision"] for entry in status.get("quarantine", ())}
            rollout = status.get("rollout", {})
            swaps = rollout.get("revision") == wanted and rollout.get("strategy") == "HotSwap"
            is_home = target in {status.get("lastGoodTemplate"), status.get("lastGoodRevision")}
            in_place = is_home and (swaps or wanted == status.get("lastGoodRevision"))
            told = wanted in quarantined or status.get("reason") in _HELD or in_place
        if not told:
            raise BrokenInvariantError("status comes first", f"{target} is deployed, wanted is {wanted}: not in status")

    # ----- what is told -----------------------------------------------------------------------------------------------

    def _told(self, status: Object) -> None:
        before = (self._world.model or {}).get("status", {})
        target, good = status.get("targetRevision"), status.get("lastGoodRevision")
        replicas = self._replicas()
        conditions = {entry["type"]: entry["status"] for entry in status.get("conditions", ())}
        if conditions.get("Ready") == "True" and replicas and not self._serves(target, replicas):
            raise BrokenInvariantError("Ready is the spec's version", f"{target} is told Ready: {self._ready}")
        if good != before.get("lastGoodRevision") and not self._serves(good, max(1, replicas)):
            raise BrokenInvariantError("good has served", f"{good} is told good: {self._ready}")
        for entry in status.get("quarantine", ()):
            if entry not in before.get("quarantine", ()):
                self._check_condemned(entry, status)
            self._condemned[entry["revision"]] = entry
        if good is not None:
            self._condemned.pop(good, None)

    def _check_condemned(self, entry: Object, status: Object) -> None:
        """Only a version that fails is condemned, and never one that has proven itself."""
        if entry["revision"] == status.get("lastGoodRevision"):
            raise BrokenInvariantError("good is not condemned", f"{entry['revision']}: {entry.get('reason')}")
        fates = self._world.ever.get(entry["version"], WORKING)
        others = self._world.crashes or entry["version"] in self._world.changes
        if not fates - WORKING - EXTERNAL and not others:
            raise BrokenInvariantError("others' faults condemn nobody", f"{entry['version']}: {entry.get('reason')}")

    def _serves(self, target: str | None, replicas: int) -> bool:
        """Whether so many pods of `target` are ready, or were when this pass began."""
        return any(ready.get(target or "", 0) >= replicas for ready in (self._ready, self._ready_now()))

    def _replicas(self) -> int:
        deployment = self._world.store.get("Deployment", MODEL)
        replicas: int = deployment["spec"]["replicas"] if deployment else 0
        return replicas

    def _ready_now(self) -> dict[str, int]:
        """How many ready pods serve each revision."""
        ready: dict[str, int] = {}
        for target in self._world.served():
            ready[target] = ready.get(target, 0) + 1
        self._swaps.proven |= ready.keys()
        return ready


def _revision(template: Object) -> str:
    return str((template["metadata"].get("labels") or {}).get(names.LABEL_REVISION, ""))


def _is_asked_for(model: Object, entry: Object, target: str) -> bool:
    """Whether the user has asked to try `target` again since it was condemned: with a new word, or by pinning it."""
    retry, pin = _retry(model), _pin(model)
    return (retry is not None and retry != entry.get("retry")) or (pin == target != entry.get("rollbackTo"))


def _annotation(model: Object, name: str) -> Any:
    return model["metadata"].get("annotations", {}).get(f"{names.GROUP}/{name}")


def _retry(model: Object) -> Any:
    return _annotation(model, "retry")


def _pin(model: Object) -> Any:
    return _annotation(model, "rollback-to")
