"""Why the wanted revision may not be rolled out now, whatever it is worth."""

from __future__ import annotations

from cosyvoice_operator import assessment, pin, revision
from cosyvoice_operator.api import Model
from cosyvoice_operator.assessment import Hold
from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.pin import Wanted
from cosyvoice_operator.revision import Policy


def find(model: Model, observed: Observed, policy: Policy, wanted: Wanted, *, rolled_back: bool) -> Hold | None:
    """The hold, if any. An unusable spec is told of even while the model is paused.

    `rolled_back`: the wanted revision is in quarantine and the last good one in its place, so nothing waits to be done.
    """
    problem = pin.problem(model, observed) or (None if wanted.pinned else _problem_of_spec(model, policy))
    problem = problem or observed.refusal
    if problem is not None:
        return Hold(reason=assessment.INVALID_SPEC, message=problem, stalled=True)
    if model.spec.paused and not rolled_back and not observed.carries(wanted.revision):
        return Hold(reason=assessment.PAUSED, message=f"{wanted.version} waits: spec.paused is true", stalled=False)
    return None


def _problem_of_spec(model: Model, policy: Policy) -> str | None:
    try:
        revision.resolve(model.spec, policy)
    except InvalidSpecError as error:
        return str(error)
    return None
