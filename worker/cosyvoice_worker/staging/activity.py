"""Signs of life of a stager at work: it says what it does, so that a standstill can be told.

Only what is new is a sign of life: the words of something that goes on tell how far it is.
"""

from __future__ import annotations

from collections.abc import Callable

# Called with what is being done, in words, and with the file it is done to if there is one.
Tell = Callable[[str, str | None], None]


def nobody(_doing: str, _file: str | None) -> None:
    """For a stager that nobody watches."""
