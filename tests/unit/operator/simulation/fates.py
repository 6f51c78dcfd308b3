"""What becomes of the pods of a version: how each try to stage and to load ends."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any


class Fate(enum.StrEnum):
    """How a pod that runs a version fares."""

    GOOD = "good"
    CORRUPT = "corrupt"  # stage ends with 65
    UNREACHABLE = "unreachable"  # stage ends with 69
    STAGE_OOM = "stage-oom"  # stage is killed at its memory limit
    INCOMPATIBLE = "incompatible"  # the worker ends with 66
    SILENT = "silent"  # the worker ends with 70
    SLOW = "slow"  # the worker ends with 72
    SEGFAULT = "segfault"  # the worker is ended by a signal
    HANG = "hang"  # the worker loads for ever
    FLAKY = "flaky"  # the first two tries end with 73, the third succeeds
    DIES = "dies"  # becomes ready, and dies before it is available
    IMAGE = "image"  # the image does not come
    CONFIG = "config"  # the container cannot be made
    MOUNT = "mount"  # a volume cannot be mounted


@dataclass(frozen=True, slots=True)
class End:
    """How a container ended, as the kubelet reports it."""

    code: int
    kubelet: str = "Error"
    reason: str | None = None
    retryable: bool = False
    digest: str | None = None

    def message(self, phase: str) -> str:
        """The termination message."""
        if self.reason is None:
            return ""
        said: dict[str, Any] = {"schema": 1, "reason": self.reason, "phase": phase, "retryable": self.retryable}
        if self.digest is not None:
            said |= {"digest": self.digest, "bytes": 1000, "elapsedSeconds": 3.0}
        return json.dumps(said | {"message": f"{phase} ended with {self.reason}"})


OTHER_BYTES = End(65, reason="DigestMismatch")
STAGED = End(0, "Completed", "Staged")
STAGE_ENDS = {
    Fate.CORRUPT: End(65, reason="DigestMismatch"),
    Fate.UNREACHABLE: End(69, reason="SourceUnreachable", retryable=True),
    Fate.STAGE_OOM: End(137, "OOMKilled"),
}
LOAD_ENDS = {
    Fate.INCOMPATIBLE: End(66, reason="MissingTensor"),
    Fate.SILENT: End(70, reason="SilentAudio"),
    Fate.SLOW: End(72, reason="LoadTimeout", retryable=True),
    Fate.SEGFAULT: End(139),
    Fate.FLAKY: End(73, reason="EngineDied", retryable=True),
}
DEATH = End(139)
FLAKY_TRIES = 2

FATAL = frozenset({Fate.CORRUPT, Fate.INCOMPATIBLE, Fate.SILENT})
RETRYABLE = frozenset({Fate.STAGE_OOM, Fate.SLOW, Fate.SEGFAULT, Fate.DIES})
AT_DEADLINE = frozenset({Fate.UNREACHABLE, Fate.HANG, Fate.IMAGE})
EXTERNAL = frozenset({Fate.CONFIG, Fate.MOUNT})
WORKING = frozenset({Fate.GOOD, Fate.FLAKY})
