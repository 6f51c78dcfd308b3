"""Reads what one pass has to know about one model. Decides nothing, writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from cosyvoice_operator import names, pin, progress, revision, source, throttling
from cosyvoice_operator.api import Model
from cosyvoice_operator.cluster import Cluster, Object
from cosyvoice_operator.errors import InvalidSpecError, RejectedError
from cosyvoice_operator.observe import Gathered, observe, owns
from cosyvoice_operator.observe_pod import UNTOLD
from cosyvoice_operator.observed import EVICTED, Claim, Observed, Pod
from cosyvoice_operator.workers import Workers

# A pod whose volumes are not mounted so long after it got a node may have said why in an event.
SLOW_MOUNT = timedelta(seconds=10)
# A pod that has not been ready for so long may be on a node that is down. Its own status then is of the time before.
SLOW_READY = timedelta(seconds=40)
MAX_SLOW_PODS = 3
_CREATING = "PodInitializing"
_MOUNT_TROUBLE = frozenset({"FailedMount", "FailedAttachVolume"})
_LISTED = ("ConfigMap", "ReplicaSet", "Pod")


class Gatherer:
    """Gathers from the API server, and from the workers themselves while they load."""

    def __init__(self, cluster: Cluster, workers: Workers) -> None:
        self._cluster = cluster
        self._workers = workers

    async def gather(self, model: Model, refusal: str | None, now: datetime) -> tuple[Gathered, Observed]:
        """The raw objects, and what they mean."""
        gathered = await self._objects(model, revision.identity(model.spec), refusal)
        observed = observe(model.identity, gathered)
        target = pin.wanted(model, observed).revision
        asked = {pod.name: pod for pod in progress.pods_that_swap(observed)}
        asked |= {pod.name: pod for pod in progress.pods_to_ask(observed, target, model.status)}
        asked |= {pod.name: pod for pod in throttling.pods_to_ask(model, observed.pods_of(target))}
        slow = [pod for pod in observed.pods_of(target) if _is_slow(pod, now)][:MAX_SLOW_PODS]
        late = [pod for pod in observed.pods if _is_late(pod, model, now)]
        over = [] if model.status.is_true("Ready") else _over_without_a_word(observed.pods)
        if asked or slow or late or over:
            statuses, mounts, evictions, down = await asyncio.gather(
                self._workers.ask(model.namespace, asked.values()),
                self._told(model.namespace, slow, _MOUNT_TROUBLE),
                self._told(model.namespace, over, frozenset({EVICTED})),
                self._nodes_down(late),
            )
            gathered = replace(gathered, statuses=statuses, mount_failures=mounts, evictions=evictions, nodes_down=down)
            observed = observe(model.identity, gathered)
        return gathered, observed

    async def _objects(self, model: Model, target: str, refusal: str | None) -> Gathered:
        namespace, name = model.namespace, model.name
        selector = f"{names.LABEL_MODEL}={name}"
        listed, named, claim = await asyncio.gather(
            asyncio.gather(*(self._cluster.list(kind, namespace, labels=selector) for kind in _LISTED)),
            asyncio.gather(
                self._cluster.get("Deployment", namespace, name),
                self._cluster.get("Service", namespace, name),
                self._cluster.get("PodDisruptionBudget", namespace, name),
                self._cluster.get("ConfigMap", namespace, names.revision_name(name, target)),
            ),
            self._claim(model),
        )
        config_maps, replica_sets, pods = listed
        lives = await self._unlisted_lives(model, {target, _carrier(named[0])}, config_maps)
        return Gathered(
            named=tuple(raw for raw in (*named, *lives) if raw is not None),
            config_maps=tuple(config_maps),
            replica_sets=tuple(replica_sets),
            pods=tuple(pods),
            claim=claim,
            refusal=refusal,
        )

    async def _unlisted_lives(
        self, model: Model, templates: set[str], listed: Sequence[Object]
    ) -> Sequence[Object | None]:
        """What has the live ConfigMaps' names without our label: the pods would load it, whoever made it."""
        known = {raw["metadata"]["name"] for raw in listed if owns(model.identity.uid, raw)}
        wanted = {names.live_name(model.name, template) for template in templates if template} - known
        return await asyncio.gather(*(self._cluster.get("ConfigMap", model.namespace, name) for name in sorted(wanted)))

    async def _claim(self, model: Model) -> Claim | None:
        """The claim of the source. Asked for only while something may be wrong: a bound claim in use cannot go."""
        try:
            where = source.parse(model.spec.source.uri)
        except InvalidSpecError:
            return None
        if not isinstance(where, source.ClaimSource) or model.status.is_true("Ready"):
            return None
        raw = await self._cluster.get("PersistentVolumeClaim", model.namespace, where.claim)
        if raw is None:
            return Claim(name=where.claim, exists=False)
        return Claim(name=where.claim, exists=True, access_modes=tuple(raw["spec"].get("accessModes", ())))

    async def _told(self, namespace: str, pods: list[Pod], reasons: frozenset[str]) -> Mapping[str, str]:
        """By pod, the message of the last event that has one of the `reasons`."""
        found = await asyncio.gather(*(self._last_told(namespace, pod, reasons) for pod in pods))
        return {pod.name: words for pod, words in zip(pods, found, strict=True) if words is not None}

    async def _last_told(self, namespace: str, pod: Pod, reasons: frozenset[str]) -> str | None:
        fields = f"involvedObject.kind=Pod,involvedObject.name={pod.name}"
        events = await self._cluster.list("Event", namespace, fields=fields)
        told = sorted((event for event in events if event.get("reason") in reasons), key=_last_seen)
        return str(told[-1].get("message", "")) if told else None

    async def _nodes_down(self, pods: list[Pod]) -> Mapping[str, str]:
        """By pod, why its node is not ready; nothing where the operator may not ask: a Role cannot allow it."""
        nodes = sorted({pod.node for pod in pods if pod.node})[:MAX_SLOW_PODS]
        try:
            found = await asyncio.gather(*(self._node_down(node) for node in nodes))
        except RejectedError:
            return {}
        down = {node: why for node, why in zip(nodes, found, strict=True) if why is not None}
        return {pod.name: down[pod.node] for pod in pods if pod.node in down}

    async def _node_down(self, node: str) -> str | None:
        raw = await self._cluster.get("Node", "", node)
        if raw is None:  # its pods go too
            return None
        conditions = (raw.get("status") or {}).get("conditions") or ()
        ready = next((condition for condition in conditions if condition["type"] == "Ready"), None)
        if ready is None or ready["status"] == "True":
            return None
        return f"{node}: {ready.get('message') or ready.get('reason') or 'NotReady'}"


def _carrier(deployment: Object | None) -> str:
    """The revision whose template the Deployment carries; empty where there is none."""
    labels = {} if deployment is None else deployment["spec"]["template"]["metadata"].get("labels") or {}
    return str(labels.get(names.LABEL_REVISION, ""))


def _is_late(pod: Pod, model: Model, now: datetime) -> bool:
    """Whether the pod has waited so long to be ready that its node is worth a look: before its version is judged."""
    patience = min(SLOW_READY, timedelta(seconds=model.spec.rollout.progress_deadline_seconds))
    since = pod.unready_since or pod.scheduled
    return not pod.ready and pod.node is not None and since is not None and now - since >= patience


def _is_slow(pod: Pod, now: datetime) -> bool:
    started = pod.stage.running or pod.stage.ended is not None or pod.stage.waiting_reason not in {None, _CREATING}
    return pod.scheduled is not None and not started and now - pod.scheduled > SLOW_MOUNT


def _over_without_a_word(pods: tuple[Pod, ...]) -> list[Pod]:
    """The newest pods that are over and do not say why.

    The kubelet forgets why it evicted a pod whose containers then ended in peace: only its event knows.
    """
    over = [pod for pod in pods if pod.lost in UNTOLD]
    return sorted(over, key=lambda pod: (pod.created, pod.name))[-MAX_SLOW_PODS:]


def _last_seen(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
