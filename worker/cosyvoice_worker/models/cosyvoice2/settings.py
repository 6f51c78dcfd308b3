"""Typed access to a configuration file, with errors that say the file, the key, what it should be and what it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeGuard

from cosyvoice_worker.models.cosyvoice2.arithmetic import LARGEST
from cosyvoice_worker.models.cosyvoice2.hyperyaml import HyperYaml
from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail

CHARACTERS_TOLD = 300


class Settings:
    """The values of one file. Every method raises WorkerError (IncompatibleModel) where a value is absent or wrong."""

    def __init__(self, file: str, values: HyperYaml, phase: Phase = Phase.MAP) -> None:
        """`phase` is when the values are asked for."""
        self.file = file
        self._values = values
        self._phase = phase

    def during(self, phase: Phase) -> Settings:
        """The same values, asked for in another phase."""
        return Settings(self.file, self._values, phase)

    def integer(self, path: str) -> int:
        value = self._get(path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # what a division of whole numbers gives
        if not _is_whole(value):
            raise self.mismatch(path, "a whole number", value)
        return value

    def number(self, path: str) -> float:
        value = self._get(path)
        if isinstance(value, str):
            value = _scientific(value)
        if not _is_whole(value) and not (isinstance(value, float) and math.isfinite(value)):
            raise self.mismatch(path, "a number", value)
        return float(value)

    def text(self, path: str) -> str:
        value = self._get(path)
        if not isinstance(value, str):
            raise self.mismatch(path, "a text", value)
        return value

    def integers(self, path: str) -> tuple[int, ...]:
        return self._integers(path, self._get(path))

    def lists_of_integers(self, path: str) -> tuple[tuple[int, ...], ...]:
        value = self._get(path)
        if not isinstance(value, list):
            raise self.mismatch(path, "a list of lists", value)
        return tuple(self._integers(path, item) for item in value)

    def optional(self, path: str, default: object) -> object:
        """The value as it is, or `default` where the file does not have it."""
        try:
            return self._values.get(path)
        except KeyError:
            return default

    def target(self, path: str) -> str | None:
        """The class that the node at `path` names; None where it names none."""
        self._get(path)
        return self._values.target(path)

    def require(self, path: str, expected: object, actual: object) -> None:
        """Raise unless both are equal."""
        if actual != expected:
            raise self.mismatch(path, expected, actual)

    def mismatch(self, path: str, expected: object, actual: object, tensor: str | None = None) -> WorkerError:
        """An error to raise: the value at `path` is not what it has to be, by the tensor if one is given."""
        because = f" by the shape of {tensor}" if tensor else ""
        wanted, found = _told(expected, str), _told(actual, repr)
        return fail(
            Reason.INCOMPATIBLE_MODEL,
            self._phase,
            f"{self.file}: {path} should be {wanted}{because}, but is {found}",
            file=self.file,
            tensor=tensor,
            expected=f"{path}: {wanted}",
            actual=f"{path}: {_told(actual, str)}",
        )

    def _get(self, path: str) -> object:
        try:
            return self._values.get(path)
        except KeyError:
            raise self.mismatch(path, "set", "absent") from None
        except ValueError as error:
            raise self.mismatch(path, "a value that can be resolved", str(error)) from error

    def _integers(self, path: str, value: object) -> tuple[int, ...]:
        if not isinstance(value, list) or not all(_is_whole(item) for item in value):
            raise self.mismatch(path, "a list of whole numbers", value)
        return tuple(value)


def _is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number that a configuration can mean; JSON has them of any length."""
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _told(value: object, form: Callable[[object], str]) -> str:
    """A foreign value, cut to what a message can hold."""
    try:
        text = form(value)
    except (ValueError, RecursionError):  # a number of too many digits, levels without end
        return f"a {type(value).__name__} that cannot be written down"
    return text if len(text) <= CHARACTERS_TOLD else text[:CHARACTERS_TOLD] + "…"


def _scientific(value: str) -> float | str:
    """YAML reads 1e-06 without a dot as a text."""
    try:
        return float(value)
    except ValueError:
        return value
