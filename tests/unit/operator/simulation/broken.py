"""The error of every rule."""

from __future__ import annotations


class BrokenInvariantError(AssertionError):
    """The operator did what it never may. The name of the rule comes first."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule
