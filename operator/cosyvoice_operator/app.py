"""Puts the operator together and runs it: lease, watches, queue, resync, health; and ends it in order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import kopf

from cosyvoice_operator import cluster, handlers, health, metrics, names, signals
from cosyvoice_operator.cluster import Cluster
from cosyvoice_operator.errors import ClusterError, InvalidSettingsError, NotFoundError
from cosyvoice_operator.gather import Gatherer
from cosyvoice_operator.lease import Lease
from cosyvoice_operator.publish import Publisher
from cosyvoice_operator.reconcile import Key, Reconciler
from cosyvoice_operator.refusals import Refusals
from cosyvoice_operator.settings import Settings
from cosyvoice_operator.workers import Direct, Proxied, Workers
from cosyvoice_operator.workqueue import WorkQueue

RELEASE_SECONDS = 5.0

logger = logging.getLogger(__name__)


async def run(settings: Settings, stop: asyncio.Event, *, in_cluster: bool) -> bool:
    """Run until `stop` is set. Returns whether it ended because of that, and not because the lease was lost.

    Raises InvalidSettingsError where it cannot even begin: no cluster, no CRD, a port that is taken.
    """
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(cluster.connect(in_cluster=in_cluster))
        await _require_crd(api, settings)
        hearing = health.Hearing(settings.resync_seconds, time.monotonic)
        try:
            server = await health.serve(hearing, settings.health_port)
            stack.callback(server.close)
            metrics.serve(settings.metrics_port)
        except OSError as error:
            raise InvalidSettingsError([f"--health-port and --metrics-port: {error}"]) from error

        lease = None
        if settings.lease_namespace is not None:
            lease = Lease(api, settings.lease_namespace, settings.identity, time.monotonic)
            if not await _unless_stopped(lease.acquire(), stop):
                return True
        hearing.heard()
        try:
            return await _lead(settings, api, hearing, lease, stop, in_cluster=in_cluster)
        finally:
            if lease is not None:
                await _release(lease)


async def _require_crd(api: Cluster, settings: Settings) -> None:
    """Without the CRD there is nothing to watch, and kopf would not notice when it comes."""
    try:
        await api.list(names.KIND, settings.namespaces[0] if settings.namespaces else None)
    except NotFoundError as error:
        problem = f"the API server does not know {names.PLURAL}.{names.GROUP}: apply crds/{names.PLURAL}.yaml first"
        raise InvalidSettingsError([problem]) from error
    except ClusterError as error:
        logger.warning("the API server does not answer as it should: %s", error)


async def _lead(
    settings: Settings,
    api: Cluster,
    hearing: health.Hearing,
    lease: Lease | None,
    stop: asyncio.Event,
    *,
    in_cluster: bool,
) -> bool:
    """Reconcile until `stop` is set (True), or until something that must not end has, such as the lease (False)."""
    drain, unwatch = asyncio.Event(), asyncio.Event()
    queue = _queue(settings, api, in_cluster=in_cluster)
    registry = handlers.make_registry(queue.add, hearing.heard, in_cluster=in_cluster)
    stopping = asyncio.create_task(stop.wait(), name="stop")
    working = asyncio.create_task(queue.run(drain), name="queue")
    watching = asyncio.create_task(_watch(registry, settings.namespaces, unwatch, stop), name="watches")
    others = [asyncio.create_task(_resync(settings, api, queue, hearing), name="resync")]
    if lease is not None:
        others.append(asyncio.create_task(lease.hold(), name="lease"))
    logger.info("leading", extra={"identity": settings.identity})
    try:
        done, _ = await asyncio.wait({stopping, working, watching, *others}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # In this order: passes that have begun are finished under the lease; without it they are cut off. kopf comes
        # later, as it ends every task of the loop that is younger than itself.
        drain.set()
        if not stopping.done():
            working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        unwatch.set()
        for task in (stopping, *others):
            task.cancel()
        await asyncio.gather(watching, stopping, *others, return_exceptions=True)
    for task in done - {stopping}:
        logger.error("%s ended: %s", task.get_name(), task.exception() or "no longer ours")
    return stopping in done


async def _watch(
    registry: kopf.OperatorRegistry, namespaces: tuple[str, ...], unwatch: asyncio.Event, stop: asyncio.Event
) -> None:
    """kopf, until `unwatch` is set."""
    others = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=handlers.make_settings(),
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=unwatch,
    )
    signals.listen(stop)  # kopf has just put its own handlers in their place
    await kopf.run_tasks(tasks, ignored=others)


def _queue(settings: Settings, api: Cluster, *, in_cluster: bool) -> WorkQueue[Key]:
    def now() -> datetime:
        return datetime.now(UTC)

    reconciler = Reconciler(
        api,
        Gatherer(api, Workers(Direct() if in_cluster else Proxied(api))),
        Publisher(api, now, settings.identity),
        Refusals(api, time.monotonic, settings.resync_seconds),
        settings.policy,
        clock=now,
    )
    return WorkQueue(reconciler.reconcile, _pass_failed, workers=settings.workers)


def _pass_failed(key: Key, error: Exception, delay: float) -> None:
    """Log a pass that is tried again. That a model was changed or deleted meanwhile is daily life, not an error."""
    metrics.RECONCILE_ERRORS.labels(type(error).__name__).inc()
    extra = {"model": "/".join(key), "seconds": round(delay, 1)}
    if isinstance(error, ClusterError):
        level = logging.DEBUG if error.status in {404, 409} else logging.WARNING
        logger.log(level, "pass failed, trying again: %s", error, extra=extra)
    else:
        logger.error("pass failed, trying again: %s", error, extra=extra, exc_info=error)


async def _resync(settings: Settings, api: Cluster, queue: WorkQueue[Key], hearing: health.Hearing) -> None:
    """Make every model due now and again, whatever the watches say."""
    while True:
        try:
            for namespace in settings.namespaces or (None,):
                for raw in await api.list(names.KIND, namespace):
                    queue.add((raw["metadata"]["namespace"], raw["metadata"]["name"]))
            hearing.heard()
        except ClusterError as error:
            logger.warning("resync failed: %s", error)
        await asyncio.sleep(settings.resync_seconds)


async def _release(lease: Lease) -> None:
    """Release the lease, if that is a matter of a moment: it expires sooner than a silent API server answers."""
    try:
        async with asyncio.timeout(RELEASE_SECONDS):
            await lease.release()
    except (ClusterError, TimeoutError) as error:
        logger.warning("lease not released, it will expire: %s", str(error) or "no answer in time")


async def _unless_stopped(work: Coroutine[None, None, None], stop: asyncio.Event) -> bool:
    """Whether `work` was done before `stop` was set; it is cancelled otherwise."""
    task = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if task.done():
        task.result()
        return True
    task.cancel()
    return False
