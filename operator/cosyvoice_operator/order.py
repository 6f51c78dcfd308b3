"""Orders to load another revision in place: the annotation on a pod, `<revision>.<attempt>.<nonce>`.

A worker takes orders of equal revision and attempt for one order. The nonce, the second at which the order was given,
makes the kubelet look again, and tells how long ago that was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_ORDER = re.compile(r"(?P<revision>[a-z0-9]{1,63})\.(?P<attempt>[0-9]{1,9})(?:\.(?P<nonce>[0-9]{1,12}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Load `revision`. `given`: when; None where the annotation does not say."""

    revision: str
    attempt: int
    given: datetime | None = None

    @property
    def name(self) -> str:
        """The order as a worker names it in its status."""
        return f"{self.revision}.{self.attempt}"

    @property
    def text(self) -> str:
        """The annotation's value."""
        return self.name if self.given is None else f"{self.name}.{int(self.given.timestamp())}"


def parse(text: str | None) -> Order | None:
    """The order in an annotation's value; None where there is none that can be read."""
    found = _ORDER.fullmatch(text or "")
    if found is None:
        return None
    return Order(revision=found["revision"], attempt=int(found["attempt"]), given=_time(found["nonce"]))


def _time(nonce: str | None) -> datetime | None:
    """The second that `nonce` counts; None where there is no such year."""
    try:
        return None if nonce is None else datetime.fromtimestamp(int(nonce), UTC)
    except (ValueError, OverflowError, OSError):
        return None
