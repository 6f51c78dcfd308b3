"""Reads what the API server returned into `Observed`. Nothing is decided here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cosyvoice_operator import live, names, served
from cosyvoice_operator.api import Identity
from cosyvoice_operator.observe_pod import read_pod
from cosyvoice_operator.observed import (
    Claim,
    Live,
    NameConflict,
    Observed,
    Pod,
    ReplicaSet,
    StoredRevision,
    WorkerStatus,
    Workload,
)

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The raw objects of one pass. `named` are those under the names our children have, whoever owns them."""

    named: tuple[Object, ...] = ()
    config_maps: tuple[Object, ...] = ()
    replica_sets: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    mount_failures: Mapping[str, str] = field(default_factory=dict)  # by pod
    evictions: Mapping[str, str] = field(default_factory=dict)  # by pod
    nodes_down: Mapping[str, str] = field(default_factory=dict)  # by pod
    statuses: Mapping[str, WorkerStatus] = field(default_factory=dict)  # by pod
    claim: Claim | None = None
    refusal: str | None = None

    def live(self, kind: str, name: str) -> Object | None:
        """The live object of this kind and name."""
        everything = (*self.named, *self.config_maps)
        return next((raw for raw in everything if raw["kind"] == kind and raw["metadata"]["name"] == name), None)


def observe(identity: Identity, gathered: Gathered) -> Observed:
    """What the pass sees of the model `identity`; only objects that it owns, and others only as conflicts."""
    deployment = gathered.live("Deployment", identity.name)
    owned_deployment = deployment if deployment is not None and owns(identity.uid, deployment) else None
    replica_sets = _children(gathered.replica_sets, owned_deployment)
    seen = Observed(
        revisions=_revisions(identity, gathered.config_maps),
        lives=_lives(identity, gathered.config_maps),
        workload=None if owned_deployment is None else _workload(owned_deployment),
        replica_sets=tuple(_replica_set(raw) for raw in replica_sets),
        pods=_pods(gathered, replica_sets),
        claim=gathered.claim,
        conflicts=tuple(_conflict(identity, raw) for raw in gathered.named if not owns(identity.uid, raw)),
        refusal=gathered.refusal,
    )
    return served.by_what_is_served(seen)


def owns(uid: str, raw: Object) -> bool:
    """Whether the object with `uid` is the controller of `raw`."""
    return any(owner["uid"] == uid for owner in _owners(raw) if owner.get("controller"))


def _owners(raw: Object) -> Sequence[Object]:
    owners: Sequence[Object] = raw["metadata"].get("ownerReferences") or ()
    return owners


def _label(raw: Object, label: str) -> str:
    return str((raw["metadata"].get("labels") or {}).get(label, ""))


def _children(candidates: Sequence[Object], owner: Object | None) -> list[Object]:
    return [] if owner is None else [raw for raw in candidates if owns(owner["metadata"]["uid"], raw)]


def _pods(gathered: Gathered, replica_sets: Sequence[Object]) -> tuple[Pod, ...]:
    owners = {raw["metadata"]["uid"] for raw in replica_sets}
    pods = [
        read_pod(
            raw,
            mount_failure=gathered.mount_failures.get(name),
            eviction=gathered.evictions.get(name),
            node_down=gathered.nodes_down.get(name),
            worker_status=gathered.statuses.get(name),
        )
        for raw in gathered.pods
        if (name := raw["metadata"]["name"])
        and "deletionTimestamp" not in raw["metadata"]
        and any(owner["uid"] in owners for owner in _owners(raw))
    ]
    return tuple(sorted(pods, key=lambda pod: (pod.created, pod.name)))


def _revisions(identity: Identity, config_maps: Sequence[Object]) -> tuple[StoredRevision, ...]:
    """Our revisions, newest first. One whose template cannot be read counts as absent: it can serve nobody.

    A label can be edited, a name cannot: one whose two do not agree is not the revision that its label says.
    """
    revisions = []
    for raw in config_maps:
        revision = _label(raw, names.LABEL_REVISION)
        named = raw["metadata"]["name"] == names.revision_name(identity.name, revision)
        if not revision or not named or not owns(identity.uid, raw) or "deletionTimestamp" in raw["metadata"]:
            continue
        template = _template(raw)
        if template is None:
            continue
        revisions.append(
            StoredRevision(
                revision=revision,
                version=_label(raw, names.LABEL_VERSION),
                created=datetime.fromisoformat(raw["metadata"]["creationTimestamp"]),
                template=template,
                outcome=_label(raw, names.LABEL_OUTCOME) or None,
                digest=_label(raw, names.LABEL_DIGEST) or None,
                pin=(raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_DIGEST),
                config=(raw.get("data") or {}).get(names.KEY_CONFIG, ""),
            )
        )
    return tuple(sorted(revisions, key=lambda stored: (stored.created, stored.revision), reverse=True))


def _lives(identity: Identity, config_maps: Sequence[Object]) -> tuple[Live, ...]:
    """Our live ConfigMaps. One that somebody broke is taken for one that names its own template: it gets repaired."""
    found = []
    for raw in config_maps:
        if not owns(identity.uid, raw) or "deletionTimestamp" in raw["metadata"]:
            continue
        template = names.template_of_live(identity.name, raw["metadata"]["name"])
        if template is not None:
            found.append(live.parse(template, raw.get("data") or {}) or Live(template=template, current=template))
    return tuple(sorted(found, key=lambda one: one.template))


def _template(raw: Object) -> Object | None:
    try:
        template = json.loads((raw.get("data") or {}).get(names.KEY_TEMPLATE, ""))
    except (ValueError, RecursionError):
        return None
    return template if isinstance(template, dict) else None


def _workload(raw: Object) -> Workload:
    spec, status = raw["spec"], raw.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    failure = conditions.get("ReplicaFailure", {})
    metadata = spec["template"]["metadata"]
    failed = failure.get("status") == "True"
    return Workload(
        revision=(metadata.get("labels") or {}).get(names.LABEL_REVISION),
        replicas=spec.get("replicas", 1),
        total=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available=status.get("availableReplicas", 0),
        settled=status.get("observedGeneration", 0) >= raw["metadata"].get("generation", 0),
        autoscaled=_is_autoscaled(raw),
        deadline_exceeded=conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded",
        create_failure=failure.get("message") if failed else None,
        create_failure_since=_time(failure.get("lastTransitionTime")) if failed else None,
        annotations=dict(metadata.get("annotations") or {}),
        pod_template=_without_creation_time(spec["template"]),
    )


def _without_creation_time(template: Object) -> Object:
    """The template without the field that the API server puts into it, empty, and takes from nobody."""
    metadata = {name: value for name, value in template["metadata"].items() if name != "creationTimestamp"}
    return {**template, "metadata": metadata}


def _replica_set(raw: Object) -> ReplicaSet:
    spec = raw["spec"]
    metadata = (spec.get("template") or {}).get("metadata") or {}
    return ReplicaSet(
        revision=_label(raw, names.LABEL_REVISION),
        replicas=spec.get("replicas", 0),
        annotations=dict(metadata.get("annotations") or {}),
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _is_autoscaled(raw: Object) -> bool:
    """Whether someone else set `replicas` through the scale subresource, as an autoscaler of the Deployment does."""
    return any(
        entry.get("subresource") == "scale" and "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
        for entry in raw["metadata"].get("managedFields") or ()
        if entry.get("manager") != names.FIELD_MANAGER
    )


def _conflict(identity: Identity, raw: Object) -> NameConflict:
    """Who has the name. A model of the same name and another uid is one that was deleted: its children will follow."""
    orphan = any(
        owner["kind"] == names.KIND and owner["name"] == identity.name and owner["uid"] != identity.uid
        for owner in _owners(raw)
    )
    return NameConflict(
        kind=raw["kind"],
        namespace=identity.namespace,
        name=raw["metadata"]["name"],
        going=orphan or "deletionTimestamp" in raw["metadata"],
    )
