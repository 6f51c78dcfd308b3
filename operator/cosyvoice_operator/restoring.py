"""What to tell while a condemned version is kept out of service and the last good one serves in its place."""

from __future__ import annotations

from cosyvoice_operator import assessment, progress
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Quarantined
from cosyvoice_operator.assessment import Assessment
from cosyvoice_operator.judgement import Judgement
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.pin import Wanted

ROLLING_BACK = "RollingBack"
ROLLED_BACK = "RolledBack"
ROLLBACK_FAILED = "RollbackFailed"


def assess(
    model: Model, observed: Observed, entry: Quarantined, restored: Wanted | None, judged: Judgement | None
) -> Assessment:
    """How the return from `entry` to `restored` does; `judged` is the judgement on `restored`.

    Without it there is nothing left to return to.
    """
    failed = f"{entry.version} failed: {entry.reason}: {entry.message}"
    if restored is None or judged is None:
        gone = f"the revision {model.status.last_good_revision} that served before is gone: its ConfigMap was deleted"
        return Assessment(reason=ROLLBACK_FAILED, message=f"{failed}; {gone}", stalled=True, degraded=True)
    if judged.condemned:
        told = f"{restored.version}, which served before, fails too: {assessment.describe(judged.failures[0])}"
        return Assessment(
            reason=ROLLBACK_FAILED,
            message=f"{failed}; {told}",
            stalled=True,
            degraded=True,
            failures=judged.failures,
            about=restored,
        )
    stalled = entry.retry_after is None
    if not is_back(model, observed, entry, restored):
        return Assessment(
            reason=ROLLING_BACK,
            message=f"{failed}; going back to {restored.version}: {_step(observed, restored, judged)}",
            progressing=True,
            stalled=stalled,
            degraded=True,
            failures=judged.failures,
            about=restored,
        )
    then = "is not tried again" if entry.retry_after is None else f"is not tried again before {entry.retry_after}"
    workload = observed.workload
    count = f"{workload.available} of {workload.replicas}" if workload else "0"
    return Assessment(
        reason=ROLLED_BACK,
        message=f"{failed}; it {then}; {restored.version} serves with {count} replicas",
        stalled=stalled,
        degraded=True,
        rolled_back=True,
        failures=judged.failures,
        about=restored,
    )


def is_back(model: Model, observed: Observed, entry: Quarantined, restored: Wanted) -> bool:
    """Whether the return is over. A replica that is lost afterwards does not begin it anew."""
    if assessment.is_complete(observed.workload, restored.revision):
        return True
    was_back = model.status.target_revision == entry.revision and model.status.is_true(ROLLED_BACK)
    return was_back and observed.carries(restored.revision) and not observed.has_pods(entry.revision)


def _step(observed: Observed, restored: Wanted, judged: Judgement) -> str:
    if judged.failures:
        return assessment.describe(judged.failures[0])
    if not observed.carries(restored.revision):
        return "its Deployment is put back"
    return progress.phase(observed, restored.revision)[1]
