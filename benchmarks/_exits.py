"""When containers of which pods ended.

The kubelet's `finishedAt` has whole seconds. containerd's own events have nanoseconds; which pod a container is of, a
watch tells. All times are seconds since 1970, of the one machine that everything runs on.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

END_SECONDS = 5.0
# One line for each event of a watch: the pod's name, then the ids of its init containers that have ended. (With `range`
# in it kubectl ends the watch after the first event.)
_INIT = ".status.initContainerStatuses[*]"
PODS = (
    f'{{.metadata.name}} {{{_INIT}.state.terminated.containerID}} {{{_INIT}.lastState.terminated.containerID}}{{"\\n"}}'
)


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a container."""

    container: str
    at: float
    code: int


class Lines:
    """Commands that run while this is entered; `heard` gets each line that they print."""

    def __init__(
        self, commands: Sequence[Sequence[str | Path]], heard: Callable[[str], None], environment: Mapping[str, str]
    ) -> None:
        self._commands = commands
        self._heard = heard
        self._environment = environment

    def __enter__(self) -> Self:
        self._running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(self._environment))
            for command in self._commands
        ]
        for process in self._running:
            if process.stdout:
                threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running:
            process.terminate()
            process.wait(END_SECONDS)

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            self._heard(line)


class Ends:
    """What was heard so far: the ends of all containers, from containerd, and the pods of some, from a watch.

    `pods` are all that the watch told of, `owners` the pods of the containers that have ended.
    """

    def __init__(self) -> None:
        self.exits: list[Exit] = []
        self.pods: set[str] = set()
        self.owners: dict[str, str] = {}

    def hear_containerd(self, line: str) -> None:
        """A line of `ctr events`."""
        if found := exit_of(line):
            self.exits.append(found)

    def hear_watch(self, line: str) -> None:
        """A line of `kubectl get pods --watch -o jsonpath=PODS`."""
        pod, *containers = line.split()
        self.pods.add(pod)
        self.owners |= {container.partition("://")[2]: pod for container in containers}

    def first_failure(self, but: Set[str]) -> tuple[str, float]:
        """Which pod failed first, of those that are not in `but`, and when. Raises LookupError where none did."""
        failed = [
            found for found in self.exits if found.code != 0 and self.owners.get(found.container, "") not in {"", *but}
        ]
        if not failed:
            raise LookupError(f"of the pods {sorted(self.pods - but)} none was seen to fail")
        first = min(failed, key=lambda found: found.at)
        return self.owners[first.container], first.at


def exit_of(line: str) -> Exit | None:
    """What a line of `ctr events` says of a container's end; None for any other line, and for an exec's end."""
    _, topic, rest = line.partition(" /tasks/exit ")
    if not topic:
        return None
    event = json.loads(rest)
    if event["id"] != event["container_id"]:
        return None
    at = event["exited_at"]
    return Exit(event["container_id"], at["seconds"] + at.get("nanos", 0) / 1e9, event.get("exit_status", 0))
