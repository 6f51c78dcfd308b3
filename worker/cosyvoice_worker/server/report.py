"""How far an ordered swap is, as `/status` tells it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from cosyvoice_worker.outcome import Outcome

State = Literal["Staging", "Loading", "Switched", "Failed"]


@dataclass(slots=True, kw_only=True)
class SwapReport:
    """`phase` is the second engine's; `room` says that a failure was for want of room and not the version's."""

    order: str
    revision: str
    state: State = "Staging"
    phase: str | None = None
    room: bool = False
    failure: dict[str, Any] | None = None
    load: dict[str, float] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.state in ("Switched", "Failed")

    def fail(self, outcome: Outcome | dict[str, Any], *, room: bool = False) -> None:
        """The swap has failed, and the engine that served goes on."""
        self.state, self.phase, self.room = "Failed", None, room
        self.failure = json.loads(outcome.to_json()) if isinstance(outcome, Outcome) else outcome

    def document(self) -> dict[str, object]:
        """As docs/architecture.md describes it."""
        return {
            "order": self.order,
            "revision": self.revision,
            "state": self.state,
            "phase": self.phase,
            "room": self.room,
            "failure": self.failure,
            "load": {phase: round(seconds, 3) for phase, seconds in self.load.items()},
        }
