"""One pass over one model: gather, decide, report, apply. Level-triggered: what set it off does not matter.

The status is written before the children that it decides on, over the version of the model that was read. So a crash at
any point leaves a status from which the next pass comes to the same decision.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from cosyvoice_operator import (
    api,
    api_status,
    events,
    foreign,
    history,
    manifests,
    metrics,
    names,
    rollout,
    status,
    throttling,
)
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.cluster import Cluster, Object
from cosyvoice_operator.desired import desired
from cosyvoice_operator.errors import ConflictError, InvalidSpecError, NotFoundError, RejectedError, TerminatingError
from cosyvoice_operator.events import Event
from cosyvoice_operator.gather import Gatherer
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.publish import Publisher
from cosyvoice_operator.refusals import Refusals
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.rollout import Decision

Key = tuple[str, str]  # namespace, name of a CosyVoiceModel

AT_ONCE_SECONDS = 0.05

logger = logging.getLogger(__name__)


class Reconciler:
    """Passes over models; `clock` tells the time."""

    def __init__(
        self,
        cluster: Cluster,
        gatherer: Gatherer,
        publisher: Publisher,
        refusals: Refusals,
        policy: Policy,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._gatherer = gatherer
        self._publisher = publisher
        self._refusals = refusals
        self._policy = policy
        self._clock = clock
        self._models = metrics.ModelCount()

    async def reconcile(self, key: Key) -> float | None:
        """One pass over the model `key`.

        The seconds until the next one is due; None where only an event or a resync makes one. Raises ClusterError where
        the pass could not be finished: it has to be tried again.
        """
        with metrics.RECONCILE_SECONDS.time():
            raw = await self._cluster.get(names.KIND, *key)
            if raw is None or "deletionTimestamp" in raw["metadata"]:  # its children go by their owner references
                self._refusals.forget(key)
                self._models.set(key, None)
                return None
            try:
                model = api.parse(raw)
            except InvalidSpecError as error:
                await self._report_unreadable(key, raw, error)
                return None
            try:
                return await self._pass(key, raw, model)
            except TerminatingError:  # the namespace goes, and everything in it
                return None

    async def _pass(self, key: Key, raw: Object, model: Model) -> float | None:
        now = self._clock()
        refusal = await self._refusals.current(key, model)
        gathered, observed = await self._gatherer.gather(model, refusal, now)
        decision = rollout.decide(model, observed, self._policy, now)

        after = status.report(model, observed, decision, now)
        self._models.set(key, after.reason)
        if after != model.status:
            await self._publish(key, raw, model, after, events.between(model.status, after, created=decision.create))
            if decision.fallen is not None:
                metrics.ROLLBACKS.labels(*key, decision.fallen.reason).inc()

        for manifest in desired(model, observed, decision, self._policy):
            live = gathered.live(manifest["kind"], manifest["metadata"]["name"])
            if live is not None and manifests.is_applied(manifest, live):
                continue
            if self._refusals.is_refused(key, manifest):
                continue
            try:
                if manifest["kind"] == "Deployment":
                    await self._take_out_foreign(manifest, observed, decision)
                await self._apply(model, manifest, exists=live is not None)
            except RejectedError as error:
                self._refusals.add(key, model, manifest, error)
                return AT_ONCE_SECONDS
        if decision.placed is not None and decision.placed.swap is not None:
            await self._order(model, decision.placed.swap.order)
        for change in history.relabellings(observed, after, condemned=decision.condemned) if decision.touch else ():
            name = names.revision_name(model.name, change.revision)
            metadata = {"labels": change.labels, "annotations": change.annotations}
            await self._cluster.annotate("ConfigMap", model.namespace, name, **metadata)
        for revision in decision.prune:
            if observed.live(revision) is not None:
                await self._cluster.delete("ConfigMap", model.namespace, names.live_name(model.name, revision))
            await self._cluster.delete("ConfigMap", model.namespace, names.revision_name(model.name, revision))
            self._log("revision pruned", model, "ConfigMap", names.revision_name(model.name, revision))
        return throttling.look_again(decision.look_again, after, now)

    async def _publish(self, key: Key, raw: Object, model: Model, after: Status, told: tuple[Event, ...]) -> None:
        """Write the status. Raises ConflictError where what it was decided on has changed since.

        Others write into a model's metadata at any time, and a pass that asks slow pods takes seconds: were each such
        write to spoil it, a busy neighbour could put a rollback off for ever.
        """
        try:
            await self._publisher.publish(raw, after, told)
        except ConflictError:
            newest = await self._cluster.get(names.KIND, *key)
            if newest is None or "deletionTimestamp" in newest["metadata"] or api.parse(newest) != model:
                raise
            await self._publisher.publish(newest, after, told)

    async def _order(self, model: Model, order: tuple[str, str] | None) -> None:
        """Tell a pod what to load in place. One that is gone needs no telling; its end brings another pass."""
        if order is None:
            return
        pod, text = order
        try:
            await self._cluster.annotate("Pod", model.namespace, pod, annotations={names.ANNOTATION_SWAP: text})
        except NotFoundError:
            return
        self._log(f"ordered {text}", model, "Pod", pod)

    async def _take_out_foreign(self, manifest: Object, observed: Observed, decision: Decision) -> None:
        """Make others' annotations in the template fit the ReplicaSet that is to be taken back into service.

        The Deployment is paused meanwhile, by the same request; the apply that follows ends that.
        """
        changes = foreign.changes(observed, decision.template) if decision.template else {}
        if changes:
            identity = {name: manifest["metadata"][name] for name in ("namespace", "name")}
            template = {"metadata": {"annotations": dict(changes)}}
            await self._cluster.overwrite(
                {
                    "apiVersion": manifest["apiVersion"],
                    "kind": manifest["kind"],
                    "metadata": identity,
                    "spec": {"paused": True, "template": template},
                }
            )

    async def _apply(self, model: Model, manifest: Object, *, exists: bool) -> None:
        """Apply. Where that is refused because of what others put into a list of ours, the list becomes ours again."""
        try:
            await self._cluster.apply(manifest)
        except RejectedError:
            if not exists:
                raise
            await self._cluster.overwrite(manifest)
            await self._cluster.apply(manifest)
        self._log("changed" if exists else "created", model, manifest["kind"], manifest["metadata"]["name"])

    async def _report_unreadable(self, key: Key, raw: Object, error: InvalidSpecError) -> None:
        before = api_status.parse_status(raw)
        after = status.unreadable(api.parse_identity(raw), before, str(error), self._clock())
        self._models.set(key, after.reason)
        if after != before:
            await self._publisher.publish(raw, after, events.between(before, after, created=False))

    def _log(self, what: str, model: Model, kind: str, name: str) -> None:
        logger.info(what, extra={"model": f"{model.namespace}/{model.name}", "kind": kind, "object": name})
