"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def write(time: datetime) -> str:
    """RFC 3339, in UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(text: str | None) -> datetime | None:
    """The time that `write` wrote; None where there is none, or none that can be read."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
