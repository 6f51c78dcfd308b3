"""Whose kill for memory it was: it tells exit code 71 from 73."""

from __future__ import annotations

from collections.abc import Callable


class OomKills:
    """The container has one counter and may have two engines. `count` reads the counter."""

    def __init__(self, count: Callable[[], int | None]) -> None:
        self._count = count
        self._attributed = 0

    def unclaimed(self) -> int:
        """Kills that no engine has been found to be the victim of."""
        return (self._count() or 0) - self._attributed

    def claim(self, unclaimed_before: int) -> bool:
        """Whether a process that was killed is the victim of one that came after `unclaimed_before`; if so, its own."""
        if self.unclaimed() <= unclaimed_before:
            return False
        self._attributed += 1
        return True
