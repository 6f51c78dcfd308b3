"""Loading in its phases: each is announced when it begins and timed when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from cosyvoice_worker.channel import EngineMessage, PhaseChanged
from cosyvoice_worker.outcome import Phase

IMPORT = "Import"

# How `/status` calls them.
KEYS = {IMPORT: "import", Phase.MAP: "map", Phase.BUILD: "build", Phase.WARM_UP: "warmUp"}


class Phases:
    """`enter` begins a phase and ends the one before; `seconds` holds those that ended, by the names of `/status`."""

    def __init__(self, send: Callable[[EngineMessage], None]) -> None:
        self.seconds: dict[str, float] = {}
        self.current = ""
        self._send = send
        self._since = self._start = time.monotonic()

    def enter(self, name: str) -> None:
        """Begin `name`: "Import", "Map", "Build" or "WarmUp". Without effect when that one is running already."""
        if name == self.current:
            return
        self._send(PhaseChanged(name=name, seconds=self._end()))
        self.current = name

    def finish(self) -> dict[str, float]:
        """End the last phase; all durations and their `total`."""
        self._end()
        return self.seconds | {"total": round(time.monotonic() - self._start, 3)}

    @property
    def outcome_phase(self) -> Phase:
        """The phase for an outcome: importing belongs to mapping there."""
        return Phase.MAP if self.current in ("", IMPORT) else Phase(self.current)

    def _end(self) -> float:
        now = time.monotonic()
        seconds, self._since = now - self._since, now
        if self.current:
            self.seconds[KEYS[self.current]] = round(seconds, 3)
        return round(seconds, 3)
