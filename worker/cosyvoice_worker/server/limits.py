"""Every limit of the front, with its unit in its name."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one worker accepts and how long it waits. `request_seconds` counts from the request's arrival."""

    queued_requests: int = 16
    text_characters: int = 5000
    instructions_characters: int = 1000
    body_bytes: int = MIB
    # Of all bodies that are being read at a time: there may be as many of them as connections.
    bodies_bytes: int = 32 * MIB
    body_seconds: float = 15.0
    head_seconds: float = 15.0
    keep_alive_seconds: int = 65
    request_seconds: float = 300.0
    # A player that reads at the speed of speech falls behind a faster engine: this is 5 minutes of 24 kHz audio.
    buffered_bytes: int = 16 * MIB
    stalled_seconds: float = 30.0
    # Of clients, not counting the admin port's: idle ones too, and those of proxies that keep some in hand.
    connections: int = 1000
    # For whatever is not speech, and for what is left of a response that is over.
    unread_seconds: float = 60.0
    # Longer than any request may take, so that draining cuts none off; with the pod's preStop of 5 s it fits into the
    # termination grace period of 330 s that the operator gives.
    drain_seconds: float = 310.0
    # While draining, for the next request of a connection that was kept: its response says that it is the last.
    linger_seconds: float = 2.0
    kill_seconds: float = 3.0
    # How often it is looked at whether another revision is ordered, and how far its staging is.
    order_seconds: float = 0.5
