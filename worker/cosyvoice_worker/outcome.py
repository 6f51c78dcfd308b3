"""How `stage` and `serve` end: reasons, exit codes and the termination message the operator reads.

The message is one JSON object of at most 1,500 bytes, because all containers of a pod share 12 KiB of termination
messages which the kubelet cuts evenly. Its fields stand in order of importance, so that a cut one still tells.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.names import TERMINATION_SCHEMA

MAX_MESSAGE_BYTES = 1500
# Of each text of an outcome: it may be a stranger's, and goes into logs and through pipes whole.
MAX_CHARACTERS = 2000


class Phase(enum.StrEnum):
    """Where in a pod's life something happened."""

    STAGE = "Stage"
    MAP = "Map"
    BUILD = "Build"
    WARM_UP = "WarmUp"
    SERVE = "Serve"


class Reason(enum.StrEnum):
    """Why a container ended. Each has one exit code and is retryable or not."""

    STAGED = "Staged"
    COMPLETED = "Completed"
    INVALID_CONFIG = "InvalidConfig"
    DIGEST_MISMATCH = "DigestMismatch"
    TRUNCATED_FILE = "TruncatedFile"
    CORRUPT_FILE = "CorruptFile"
    LFS_POINTER = "LFSPointer"
    MISSING_FILE = "MissingFile"
    UNKNOWN_VERSION = "UnknownVersion"
    MISSING_TENSOR = "MissingTensor"
    UNEXPECTED_TENSOR = "UnexpectedTensor"
    SHAPE_MISMATCH = "ShapeMismatch"
    DTYPE_MISMATCH = "DtypeMismatch"
    INCOMPATIBLE_MODEL = "IncompatibleModel"
    SOURCE_UNREACHABLE = "SourceUnreachable"
    WARM_UP_FAILED = "WarmUpFailed"
    NON_FINITE_AUDIO = "NonFiniteAudio"
    SILENT_AUDIO = "SilentAudio"
    OUT_OF_MEMORY = "OutOfMemory"
    OUT_OF_SPACE = "OutOfSpace"
    LOAD_TIMEOUT = "LoadTimeout"
    ENGINE_DIED = "EngineDied"
    ACCESS_DENIED = "AccessDenied"


EXIT_CODES: dict[Reason, int] = {
    Reason.STAGED: 0,
    Reason.COMPLETED: 0,
    Reason.INVALID_CONFIG: 64,
    Reason.DIGEST_MISMATCH: 65,
    Reason.TRUNCATED_FILE: 65,
    Reason.CORRUPT_FILE: 65,
    Reason.LFS_POINTER: 65,
    Reason.MISSING_FILE: 66,
    Reason.UNKNOWN_VERSION: 66,
    Reason.MISSING_TENSOR: 66,
    Reason.UNEXPECTED_TENSOR: 66,
    Reason.SHAPE_MISMATCH: 66,
    Reason.DTYPE_MISMATCH: 66,
    Reason.INCOMPATIBLE_MODEL: 66,
    Reason.SOURCE_UNREACHABLE: 69,
    Reason.WARM_UP_FAILED: 70,
    Reason.NON_FINITE_AUDIO: 70,
    Reason.SILENT_AUDIO: 70,
    Reason.OUT_OF_MEMORY: 71,
    Reason.OUT_OF_SPACE: 71,
    Reason.LOAD_TIMEOUT: 72,
    Reason.ENGINE_DIED: 73,
    Reason.ACCESS_DENIED: 77,
}

RETRYABLE_EXIT_CODES = frozenset({69, 71, 72, 73})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What ended, and why; `digest`, `bytes` and `elapsed_seconds` also tell of a success."""

    reason: Reason
    phase: Phase
    message: str
    file: str | None = None
    tensor: str | None = None
    expected: str | None = None
    actual: str | None = None
    elapsed_seconds: float | None = None
    digest: str | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("message", "file", "tensor", "expected", "actual"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, _presentable(text))

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.reason]

    @property
    def retryable(self) -> bool:
        return self.exit_code in RETRYABLE_EXIT_CODES

    def to_json(self) -> str:
        """The termination message: at most MAX_MESSAGE_BYTES of ASCII JSON, long texts cut from the least important."""
        fields = self._fields()
        encoded = json.dumps(fields, separators=(",", ":"))
        for name in ("message", "actual", "expected", "tensor", "file"):
            excess = len(encoded) - MAX_MESSAGE_BYTES
            if excess <= 0:
                break
            if name in fields:
                fields[name] = _shorten(str(fields[name]), excess)
                encoded = json.dumps(fields, separators=(",", ":"))
        return encoded

    def log_fields(self) -> dict[str, object]:
        """The same fields for a log line, whose own message says `message`."""
        return {name: value for name, value in self._fields().items() if name not in ("schema", "message")}

    def _fields(self) -> dict[str, object]:
        fields: dict[str, object | None] = {
            "schema": TERMINATION_SCHEMA,
            "reason": self.reason.value,
            "phase": self.phase.value,
            "retryable": self.retryable,
            "file": self.file,
            "tensor": self.tensor,
            "expected": self.expected,
            "actual": self.actual,
            "elapsedSeconds": None if self.elapsed_seconds is None else round(self.elapsed_seconds, 3),
            "digest": self.digest,
            "bytes": self.bytes,
            "message": self.message,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _presentable(text: str) -> str:
    """`text` cut to MAX_CHARACTERS, on one line and printable: names of files and tensors may hold anything."""
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "..."
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return " " if character in "\n\r\t" else character.encode("unicode_escape").decode("ascii")


def _shorten(text: str, excess: int) -> str:
    """Cut `text` so that its JSON form loses at least `excess` bytes (or becomes a lone ellipsis)."""
    target = len(json.dumps(text)) - excess - len("...")
    keep = text
    while keep and len(json.dumps(keep)) > target:
        keep = keep[: min(len(keep) - 1, max(target, 0))]
    return keep + "..."


class WorkerError(Exception):
    """A failure with an outcome. Everything the worker raises on purpose is one of these.

    `args` carry only the outcome, so that it survives being sent between processes.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        return self.outcome.message


def fail(
    reason: Reason,
    phase: Phase,
    message: str,
    *,
    file: str | None = None,
    tensor: str | None = None,
    expected: object = None,
    actual: object = None,
) -> WorkerError:
    """A WorkerError ready to be raised: `raise fail(Reason.SHAPE_MISMATCH, Phase.MAP, ...)`."""
    return WorkerError(
        Outcome(
            reason=reason,
            phase=phase,
            message=message,
            file=file,
            tensor=tensor,
            expected=None if expected is None else str(expected),
            actual=None if actual is None else str(actual),
        )
    )


def write_termination_message(outcome: Outcome, path: str | Path) -> bool:
    """Write the message for the kubelet, which made the file. False where there is none, as outside a pod."""
    try:
        with Path(path).open("r+", encoding="ascii") as file:
            file.truncate()
            file.write(outcome.to_json())
    except OSError:
        return False
    return True
