"""Where a model's weights come from: the grammar of `spec.source.uri`.

pvc://CLAIM[/PATH]      a directory of a PersistentVolumeClaim in the model's namespace
hostpath:///PATH        a directory of the node, where the operator's configuration allows it
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.names import SOURCE_ROOT

FIELD = "spec.source.uri"

_SEGMENT = r"[A-Za-z0-9._@+=-]+"
_CLAIM = re.compile(rf"pvc://(?P<claim>[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?)(?P<path>(?:/{_SEGMENT})*)/?")
_HOST_PATH = re.compile(rf"hostpath://(?P<path>(?:/{_SEGMENT})+)/?")


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """`path` (no leading slash, "" for its root) of the PersistentVolumeClaim `claim`."""

    claim: str
    path: str

    @property
    def path_in_pod(self) -> str:
        return f"{SOURCE_ROOT}/{self.path}" if self.path else SOURCE_ROOT


@dataclass(frozen=True, slots=True)
class HostPathSource:
    """The absolute directory `path` of whatever node the pod runs on."""

    path: str

    @property
    def path_in_pod(self) -> str:
        return SOURCE_ROOT


Source = ClaimSource | HostPathSource


def parse(uri: str) -> Source:
    """The source that `uri` names. Raises InvalidSpecError."""
    if any(segment in {".", ".."} for segment in uri.split("/")):
        raise InvalidSpecError(FIELD, f"{uri!r} has a segment '.' or '..': write the directory without them")
    if match := _CLAIM.fullmatch(uri):
        return ClaimSource(match["claim"], match["path"].lstrip("/"))
    if match := _HOST_PATH.fullmatch(uri):
        return HostPathSource(match["path"])
    raise InvalidSpecError(FIELD, f"{uri!r} is neither pvc://CLAIM[/PATH] nor hostpath:///PATH")


def is_allowed(source: Source, allowed_host_paths: tuple[str, ...]) -> bool:
    """Whether a model may read `source`: claims always, directories of the node only under one of the allowed ones."""
    if isinstance(source, ClaimSource):
        return True
    return any(PurePosixPath(source.path).is_relative_to(root) for root in allowed_host_paths)
