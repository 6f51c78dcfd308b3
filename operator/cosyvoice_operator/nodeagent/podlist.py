"""Asks the API server for the worker pods of one node. `list` on pods is all that the agent may do there."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib import request
from urllib.error import URLError
from urllib.parse import quote, urlencode

from cosyvoice_operator import names

TIMEOUT_SECONDS = 30.0
MAX_BYTES = 64 * 1024 * 1024


class PodListError(Exception):
    """The API server did not answer as it should; the message says which request and how it ended."""


class _NoRedirect(request.HTTPRedirectHandler):
    """The token is for the API server alone: where it sends one elsewhere, that is its answer."""

    def redirect_request(self, *_: Any) -> None:
        return None


class PodList:
    """Of `node`, in `namespaces` (empty: all). `account` is the directory of the service account's files.

    The token is read anew each time: the kubelet replaces it within the hour.
    """

    def __init__(self, server: str, account: Path, node: str, namespaces: Sequence[str]) -> None:
        self._server = server.rstrip("/")
        self._account = account
        scopes = [f"/api/v1/namespaces/{quote(namespace)}/pods" for namespace in namespaces] or ["/api/v1/pods"]
        selectors = {
            "fieldSelector": f"spec.nodeName={node}",
            "labelSelector": f"{names.LABEL_MODEL},{names.LABEL_APP_COMPONENT}={names.COMPONENT_WORKER}",
            "resourceVersion": "0",  # what the API server remembers will do, and costs etcd nothing
        }
        self._paths = [f"{scope}?{urlencode(selectors)}" for scope in scopes]

    def fetch(self) -> tuple[Mapping[str, Any], ...]:
        """The PodLists. Raises PodListError."""
        return tuple(self._get(path) for path in self._paths)

    def _get(self, path: str) -> Mapping[str, Any]:
        url = self._server + path
        try:
            opener = request.build_opener(request.ProxyHandler({}), _NoRedirect, *self._security())
            asked = request.Request(url, headers=self._credentials())  # noqa: S310 - the scheme is the administrator's
            with opener.open(asked, timeout=TIMEOUT_SECONDS) as answer:
                content = answer.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise PodListError(f"GET {url}: more than {MAX_BYTES} bytes")
            found = json.loads(content)
        except (URLError, OSError, ValueError, HTTPException, RecursionError) as error:
            raise PodListError(f"GET {url}: {error}") from error
        if not isinstance(found, dict):
            raise PodListError(f"GET {url}: no object but {type(found).__name__}")
        return found

    def _security(self) -> list[request.BaseHandler]:
        if not self._server.startswith("https:"):
            return []
        return [request.HTTPSHandler(context=ssl.create_default_context(cafile=str(self._account / "ca.crt")))]

    def _credentials(self) -> dict[str, str]:
        if not self._server.startswith("https:"):  # a token is for the API server alone, and not to be read on the way
            return {}
        return {"Authorization": f"Bearer {(self._account / 'token').read_text(encoding='ascii').strip()}"}
