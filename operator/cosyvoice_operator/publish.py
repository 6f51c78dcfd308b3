"""Tells the world: writes a model's status, then sends the events that go with it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime

from cosyvoice_operator import api, api_status, names, times
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.cluster import Cluster, Object
from cosyvoice_operator.errors import ClusterError, TerminatingError
from cosyvoice_operator.events import Event

MAX_EVENT_MESSAGE = 1000

logger = logging.getLogger(__name__)


class Publisher:
    """`clock` tells the time, `instance` names this process in its events."""

    def __init__(self, cluster: Cluster, clock: Callable[[], datetime], instance: str) -> None:
        self._cluster = cluster
        self._clock = clock
        self._instance = instance

    async def publish(self, raw: Object, after: Status, events: Iterable[Event]) -> None:
        """Write the status over the version of the model that was read. Raises ConflictError where it changed since.

        An event that cannot be sent is logged and lost: the status says the same.
        """
        identity = api.parse_identity(raw)
        model = f"{identity.namespace}/{identity.name}"
        await self._cluster.replace(_status_of(raw, after), subresource="status")
        before = api_status.parse_status(raw)
        if (before.reason, before.message) != (after.reason, after.message):
            facts = {"revision": after.target_revision, "version": after.target_version, "reason": after.reason}
            logger.info("status: %s", after.message, extra={"model": model, **facts})
        for event in events:
            try:
                await self._cluster.create(self._manifest(raw, event))
            except TerminatingError:
                return
            except ClusterError as error:
                logger.warning("event %s not sent: %s", event.reason, error, extra={"model": model})

    def _manifest(self, raw: Object, event: Event) -> Object:
        identity = api.parse_identity(raw)
        now = times.write(self._clock())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{identity.name}.{secrets.token_hex(8)}", "namespace": identity.namespace},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "namespace": identity.namespace,
                "name": identity.name,
                "uid": identity.uid,
                "resourceVersion": raw["metadata"]["resourceVersion"],
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:MAX_EVENT_MESSAGE],
            "source": {"component": names.FIELD_MANAGER},
            "reportingComponent": names.FIELD_MANAGER,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


def _status_of(raw: Object, status: Status) -> Object:
    """What to write: of the rest the API server keeps what it has, so it need not travel (a spec can be large)."""
    metadata = {field: raw["metadata"][field] for field in ("namespace", "name", "uid", "resourceVersion")}
    encoded = api_status.encode_status(status)
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "status": encoded}
