"""The ConfigMap that gives a running model a voice: the worker mounts `<model>-voices` and reads it at each use."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.voices import pack
from cosyvoice_worker.voices.errors import VoiceError, refuse
from cosyvoice_worker.voices.limits import SUFFIX
from cosyvoice_worker.voices.pack import Pack

NAME_SUFFIX = "-voices"
_DNS_1035_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_DNS_1123_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Target:
    """Where the ConfigMap belongs. Raises VoiceError for names that Kubernetes would refuse."""

    model: str
    namespace: str | None = None

    def __post_init__(self) -> None:
        if not _DNS_1035_LABEL.fullmatch(self.model):
            raise _bad_name("--configmap", "the name of a CosyVoiceModel", self.model)
        if self.namespace is not None and not _DNS_1123_LABEL.fullmatch(self.namespace):
            raise _bad_name("--namespace", "the name of a namespace", self.namespace)


def manifest(target: Target, voice: str, content: Pack) -> str:
    """The ConfigMap `<model>-voices` with one voice, as JSON for `kubectl apply --server-side -f -`.

    Server-side, because the annotation of a client-side apply cannot hold more than some 10 s of voice.
    """
    metadata = {"name": target.model + NAME_SUFFIX}
    if target.namespace is not None:
        metadata["namespace"] = target.namespace
    data = base64.b64encode(pack.encode(content, voice + SUFFIX)).decode("ascii")
    configmap = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "binaryData": {voice + SUFFIX: data},
    }
    return json.dumps(configmap, indent=2) + "\n"


def _bad_name(option: str, expected: str, actual: str) -> VoiceError:
    return refuse(option, expected=expected, actual=repr(actual[:80]), reason=Reason.INVALID_CONFIG)
