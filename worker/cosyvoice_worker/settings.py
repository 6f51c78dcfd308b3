"""What the pod is configured to run: `/etc/cosyvoice/model.json`, read once and checked whole.

The document is described in docs/architecture.md. Everything that is wrong with it is told in one message, because
each further try costs the user a rollout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cosyvoice_worker.names import CONFIG_SCHEMA
from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.strict import problems_of

Device = Literal["cpu", "cuda"]
Dtype = Literal["auto", "float32", "float16", "bfloat16"]
# \Z and not $, which lets a line end pass.
Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z", description="sha256: and 64 hexadecimal digits")]
NonEmpty = Annotated[str, Meta(min_length=1)]
# Files are named by it.
Revision = Annotated[str, Meta(pattern=r"^[a-z0-9]{1,63}\Z", description="lower-case letters and digits")]
FilePath = Annotated[str, Meta(pattern=r"^[^\0]+\Z", description="a path, without a NUL")]
Positive = Annotated[int, Meta(gt=0)]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the weights come from. `path` is where the pod sees `uri`; `digest` None means any content will do."""

    uri: NonEmpty
    path: FilePath
    digest: Digest | None = None


class Staging(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The tmpfs the weights are copied to, and whether a staged version is hashed again at each start."""

    size_limit_bytes: Positive
    verify: Literal["Once", "Always"] = "Once"


class WarmUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is spoken before the pod is ready, at most `max_seconds` of audio for each text and mode."""

    texts: Annotated[list[NonEmpty], Meta(min_length=1)]
    voice: NonEmpty | None = None
    max_seconds: Annotated[float, Meta(gt=0, le=30)] = 1.0


class Recycle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When a fresh engine takes over from one that serves: after so many requests, after so much growth of memory."""

    max_requests: Positive | None = None
    max_memory_growth_bytes: Positive | None = None


class Engine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"fallback_to_cpu": "fallbackToCPU"}):
    """How the model is run. `loadTimeoutSeconds` bounds map, build and warm-up together."""

    device: Device
    warm_up: WarmUp = msgspec.field(name="warmUp")
    load_timeout_seconds: Positive = msgspec.field(name="loadTimeoutSeconds")
    dtype: Dtype = "auto"
    preload: bool = True
    fallback_to_cpu: bool = False
    recycle: Recycle = Recycle()


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of model.json. Above `memory_high_bytes` the kernel is to slow the worker down."""

    schema: int
    namespace: NonEmpty
    model: NonEmpty
    version: NonEmpty
    revision: Revision
    source: Source
    staging: Staging
    engine: Engine
    memory_high_bytes: Positive | None = msgspec.field(default=None, name="memoryHighBytes")


def read_settings(path: str | Path, phase: Phase) -> Settings:
    """The settings in the file `path`; raises WorkerError(InvalidConfig) that names every problem found in it."""
    return parse_settings(read_document(path, phase), phase, name=str(path))


def read_document(path: str | Path, phase: Phase) -> bytes:
    """The text of the file `path`; raises WorkerError(InvalidConfig)."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise fail(
            Reason.INVALID_CONFIG, phase, f"cannot read the configuration {path}: {error.strerror}", file=str(path)
        ) from error


def parse_settings(raw: bytes, phase: Phase, *, name: str = "model.json") -> Settings:
    """The settings in the JSON text `raw`; `name` is what the error calls it."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise fail(Reason.INVALID_CONFIG, phase, f"{name} is not JSON: {error}", file=name) from error
    problems = problems_of(document, Settings) or _contradictions(msgspec.convert(document, Settings))
    if problems:
        raise fail(Reason.INVALID_CONFIG, phase, f"{name}: " + "; ".join(problems), file=name)
    return msgspec.convert(document, Settings)


def _contradictions(settings: Settings) -> list[str]:
    """What no single field can be blamed for."""
    problems = []
    if settings.schema != CONFIG_SCHEMA:
        problems.append(
            f"schema: expected {CONFIG_SCHEMA}, got {settings.schema}; the operator and the worker image are of "
            "different releases"
        )
    if settings.engine.device == "cpu" and settings.engine.dtype == "float16":
        problems.append("engine.dtype: float16 needs device cuda; use float32 or auto on cpu")
    return problems
