"""Models that fail: their status, and an end to them."""

from __future__ import annotations

from typing import Any

from dev.playground import Playground
from dev.waiting import wait_for

# A first version that fails for good has nothing to be rolled back to.
NO_PREVIOUS_VERSION = "NoPreviousVersion"
NOTHING_TO_GO_BACK_TO = "; there is no earlier version to go back to"


def status_with_a_failure(playground: Playground, name: str) -> dict[str, Any]:
    """The model's status once it tells a failure. The model goes then, or its pods would be tried again and again."""

    def failed() -> dict[str, Any] | None:
        status: dict[str, Any] = playground.model(name).get("status", {})
        return status if status.get("failures") else None

    try:
        status = wait_for(f"a failure of {name}", failed, timeout=180)
    except Exception as error:
        error.add_note(playground.describe(name))
        raise
    finally:
        playground.run("delete", "cosyvoicemodel", name, "--wait=false")
    if status is None:
        raise LookupError(name)
    return status


def condition_statuses(status: dict[str, Any]) -> dict[str, str]:
    """The conditions that a failure bears on."""
    told = {condition["type"]: condition["status"] for condition in status["conditions"]}
    return {kind: told[kind] for kind in ("Ready", "Available", "Progressing", "Stalled", "Degraded")}
