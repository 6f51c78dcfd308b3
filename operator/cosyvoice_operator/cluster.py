"""The only door to Kubernetes: the package's dynamic client, plain dicts, a timeout on every request.

The typed models of the package are never touched: importing them costs seconds, and they drop fields they do not know.
Paths are known here, so nothing has to be discovered.
"""

from __future__ import annotations

import asyncio
import http
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from kubernetes.aio import client, config, dynamic

from cosyvoice_operator import metrics, names
from cosyvoice_operator.errors import (
    ClusterError,
    ConflictError,
    InvalidSettingsError,
    NotFoundError,
    RejectedError,
    TerminatingError,
    UnavailableError,
)

REQUEST_TIMEOUT_SECONDS = 30.0
MAX_ERROR_TEXT = 1000
UNTYPED = "failed to create typed patch object"
_LAST_TURNS = 3

_CORE, _APPS = "/api/v1", "/apis/apps/v1"
_RESOURCES = {
    names.KIND: (f"/apis/{names.API_VERSION}", names.PLURAL),
    "ConfigMap": (_CORE, "configmaps"),
    "Event": (_CORE, "events"),
    "PersistentVolumeClaim": (_CORE, "persistentvolumeclaims"),
    "Node": (_CORE, "nodes"),
    "Pod": (_CORE, "pods"),
    "Service": (_CORE, "services"),
    "Deployment": (_APPS, "deployments"),
    "ReplicaSet": (_APPS, "replicasets"),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
}
_ERRORS: dict[int, type[ClusterError]] = {
    400: RejectedError,
    403: RejectedError,
    404: NotFoundError,
    409: ConflictError,
    413: RejectedError,
    422: RejectedError,
}

Object = dict[str, Any]


@asynccontextmanager
async def connect(*, in_cluster: bool, kubeconfig: str | None = None) -> AsyncIterator[Cluster]:
    """The API server of the pod's own cluster, or of the current context of a kubeconfig (default: KUBECONFIG).

    Raises InvalidSettingsError where there is neither.
    """
    configuration = client.Configuration()
    try:
        if in_cluster:
            config.load_incluster_config(client_configuration=configuration)
        else:
            await config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
    except config.ConfigException as error:
        raise InvalidSettingsError([f"no cluster to work on: {error} (outside of a pod: set KUBECONFIG)"]) from error
    api = client.ApiClient(configuration)
    try:
        yield Cluster(dynamic.DynamicClient(api))
    finally:
        await api.close()
        # What was still being connected when its request was cut off is closed in the next turns of the loop.
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)


class Cluster:
    """Requests to the API server. Every method raises a ClusterError of `errors` where the request did not succeed."""

    def __init__(self, dynamic_client: dynamic.DynamicClient) -> None:
        self._client = dynamic_client

    async def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """The object, or None where there is none."""
        try:
            found: Object = await self._request("get", kind, _path(kind, namespace, name))
        except NotFoundError:
            return None
        return found

    async def list(
        self, kind: str, namespace: str | None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Object]:
        """The objects that match the selectors, in one namespace or (None) in all. Each says its kind and API."""
        answer = await self._request("get", kind, _path(kind, namespace), label_selector=labels, field_selector=fields)
        return [{**item, "apiVersion": answer["apiVersion"], "kind": kind} for item in answer["items"]]

    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        """Server-side apply, as the only manager of the fields in `manifest`."""
        await self._request(
            "patch",
            manifest["kind"],
            _path(manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"]),
            body=manifest,
            content_type="application/apply-patch+yaml",
            field_manager=names.FIELD_MANAGER,
            force_conflicts="true",
            dry_run="All" if dry_run else None,
        )

    async def overwrite(self, manifest: Object) -> None:
        """Merge `manifest` over the live object: maps are merged, lists replaced, whoever their entries belong to."""
        metadata = manifest["metadata"]
        await self._request(
            "patch",
            manifest["kind"],
            _path(manifest["kind"], metadata["namespace"], metadata["name"]),
            body=manifest,
            content_type="application/merge-patch+json",
            field_manager=names.FIELD_MANAGER,
        )

    async def annotate(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Set annotations and labels of an object that may not be ours to apply, and touch nothing else of it."""
        metadata = {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
        await self._request(
            "patch",
            kind,
            _path(kind, namespace, name),
            body={"metadata": {field: values for field, values in metadata.items() if values}},
            content_type="application/merge-patch+json",
            field_manager=names.FIELD_MANAGER,
        )

    async def create(self, manifest: Object) -> Object:
        """Create an object. Raises ConflictError where it exists."""
        path = _path(manifest["kind"], manifest["metadata"]["namespace"])
        created: Object = await self._request("post", manifest["kind"], path, body=manifest)
        return created

    async def replace(self, manifest: Object, *, subresource: str | None = None) -> Object:
        """Write an object over the version it was read at. Raises ConflictError where that is not the newest."""
        metadata = manifest["metadata"]
        path = _path(manifest["kind"], metadata["namespace"], metadata["name"], subresource)
        written: Object = await self._request("put", manifest["kind"], path, body=manifest)
        return written

    async def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object; one that is gone already is fine."""
        try:
            await self._request("delete", kind, _path(kind, namespace, name))
        except NotFoundError:
            return

    async def proxy(
        self, namespace: str, pod: str, port: int, path: str, *, limit: int, timeout_seconds: float
    ) -> bytes:
        """The body of a GET on a pod's port, through the API server: at most `limit` + 1 bytes."""
        url = f"{_path('Pod', namespace, f'{pod}:{port}')}/proxy{path}"
        response = await self._send("get", "Pod", url, timeout_seconds)
        received = bytearray()
        try:
            async with response:
                while len(received) <= limit and (piece := await response.content.read(limit + 1 - len(received))):
                    received += piece
        except (aiohttp.ClientError, TimeoutError) as error:
            raise UnavailableError(f"get {url}", 0, f"the answer broke off: {error!r}") from error
        return bytes(received)

    async def _request(self, verb: str, kind: str, path: str, **parameters: Any) -> Any:
        response = await self._send(verb, kind, path, REQUEST_TIMEOUT_SECONDS, **parameters)
        try:
            return await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise UnavailableError(f"{verb} {path}", 0, f"the answer broke off: {error!r}") from error

    async def _send(self, verb: str, kind: str, path: str, seconds: float, **parameters: Any) -> aiohttp.ClientResponse:
        """Send one request, count it, and turn every way it can fail into one of ours."""
        code = 0
        try:
            response: aiohttp.ClientResponse = await self._client.request(
                verb, path, serialize=False, _request_timeout=seconds, **parameters
            )
            code = response.status
        except client.ApiException as error:
            code = error.status or 0
            raise _error(f"{verb} {path}", code, error) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(f"{verb} {path}", 0, repr(error)) from error
        finally:
            metrics.API_REQUESTS.labels(verb, kind, str(code)).inc()
        return response


def _path(kind: str, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    prefix, plural = _RESOURCES[kind]
    parts = [prefix, f"namespaces/{namespace}" if namespace else None, plural, name, subresource]
    return "/".join(part for part in parts if part)


def _error(request: str, code: int, error: client.ApiException) -> ClusterError:
    """Our error for what the API server answered, without the headers and tracebacks that the package adds."""
    body: Any = error.body or ""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    try:
        answer = json.loads(text)
        message = str(answer["message"])
        causes = {cause.get("reason") for cause in (answer.get("details") or {}).get("causes") or ()}
    except (ValueError, KeyError, TypeError, AttributeError):
        message, causes = text or error.reason or "no reason given", set()
    # What the schema of server-side apply refuses comes as a fault of the server, and will again.
    if code == http.HTTPStatus.INTERNAL_SERVER_ERROR and UNTYPED in message:
        return RejectedError(request, code, message[:MAX_ERROR_TEXT])
    if "NamespaceTerminating" in causes:
        return TerminatingError(request, code, message[:MAX_ERROR_TEXT])
    return _ERRORS.get(code, UnavailableError)(request, code, message[:MAX_ERROR_TEXT])
