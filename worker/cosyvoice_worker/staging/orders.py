"""Orders to change the model of a running pod: what is read of them, and how the stager and the front tell each other.

An order is the text `<revision>.<attempt>` or `<revision>.<attempt>.<nonce>`. A nonce only makes the kubelet look
again: it is the same order. Under a root, `orders/<revision>.<attempt>.json` is how far its staging is (the stager
writes it), and `orders/<revision>.<attempt>.begun` says that a front has begun to load it: a worker that ended over an
order does not begin it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from cosyvoice_worker.names import ORDERS
from cosyvoice_worker.staging.pointer import replace_file

RESULT_SCHEMA = 1

State = Literal["Staging", "Staged", "Failed"]

_ORDER = re.compile(r"([a-z0-9]{1,63})\.([0-9]{1,9})(?:\.[A-Za-z0-9-]{1,63})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Order:
    """Serve `revision`; `attempt` tells one try from the next."""

    revision: str
    attempt: int

    @property
    def name(self) -> str:
        return f"{self.revision}.{self.attempt}"


def parse(text: str) -> Order | None:
    """The order in `text`; None where there is none."""
    found = _ORDER.fullmatch(text.strip())
    return None if found is None else Order(found[1], int(found[2]))


class Result(msgspec.Struct, frozen=True):
    """How far the staging of an order is; `outcome` is a termination message's document when it failed.

    `room`: it failed for want of room that others take, so the version is not to blame. `tries` counts how often a
    stager has begun it: one that was killed begins again.
    """

    order: str
    revision: str
    state: State
    outcome: dict[str, Any] | None = None
    room: bool = False
    tries: int = 1
    schema: int = RESULT_SCHEMA


def write_result(root: Path, result: Result) -> None:
    """Tell it, by rename."""
    path = root / ORDERS / f"{result.order}.json"
    path.parent.mkdir(exist_ok=True)
    replace_file(path, msgspec.json.encode(result))


def read_result(root: Path, order: Order) -> Result | None:
    """What the stager has told of `order`; None while that is nothing that can be read."""
    try:
        return msgspec.json.decode((root / ORDERS / f"{order.name}.json").read_bytes(), type=Result)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


def forget_results(root: Path, but: Order | None) -> None:
    """Remove what was told of all orders except one."""
    if (root / ORDERS).is_dir():
        for path in (root / ORDERS).glob("*.json"):
            if but is None or path.stem != but.name:
                path.unlink()


def begin(root: Path, order: Order) -> None:
    """Mark `order` as begun."""
    path = _mark(root, order)
    path.parent.mkdir(exist_ok=True)
    path.touch()


def was_begun(root: Path, order: Order) -> bool:
    """Whether a front has begun to load what `order` names."""
    return _mark(root, order).exists()


def _mark(root: Path, order: Order) -> Path:
    return root / ORDERS / f"{order.name}.begun"
