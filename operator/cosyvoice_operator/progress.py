"""How far a revision's pods have come, where nothing is wrong: the phase shown while a rollout goes on."""

from __future__ import annotations

from cosyvoice_operator import eligibility
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.observed import Observed, Pod

CREATING = "Creating"
SCHEDULING = "Scheduling"
STAGING = "Staging"
LOADING = "Loading"
ROLLING_OUT = "RollingOut"


def phase(observed: Observed, revision: str) -> tuple[str, str]:
    """The phase of the least advanced pod of `revision`, and what there is to say about it."""
    pods = observed.pods_of(revision)
    if not pods:
        return CREATING, "waiting for the Deployment's pods"
    pod = min(pods, key=lambda pod: (_rank(pod), pod.name))
    ready = sum(pod.ready for pod in pods)
    wanted = observed.workload.replicas if observed.workload else len(pods)
    reason, words = _words(pod, f"{ready} of {wanted} replicas ready")
    return reason, words + _lost_before(observed, revision, pods)


def _lost_before(observed: Observed, revision: str, pods: tuple[Pod, ...]) -> str:
    """Why the newest pod that was replaced failed as a whole: it may happen to the next one, too."""
    lost = [pod for pod in observed.pods if pod.revision == revision and pod.lost and pod not in pods]
    if not lost:
        return ""
    newest = max(lost, key=lambda pod: (pod.created, pod.name))
    return f" (in place of {newest.name}: {newest.lost}: {newest.lost_message or 'no message'})"


def is_loading(pod: Pod) -> bool:
    """Whether the pod's worker runs and is not ready: it can be asked how far it is."""
    return pod.worker.running and not pod.ready


def pods_to_ask(observed: Observed, revision: str, status: Status) -> tuple[Pod, ...]:
    """The pods whose /status is worth a request: those that load, and a ready one until its times are recorded."""
    recorded = status.load is not None and status.load.revision == revision
    reachable = [pod for pod in observed.pods_of(revision) if pod.address and pod.worker.running]
    loading = [pod for pod in reachable if not pod.ready]
    ready = [] if recorded else [pod for pod in reachable if pod.ready][:1]
    return (*loading, *ready)


def pods_that_swap(observed: Observed) -> tuple[Pod, ...]:
    """The pods that may serve something else than what they were made for: only they know what.

    One that began while another revision was current has no order to show for it.
    """
    swapped = {live.template for live in observed.lives if live.candidate or live.current != live.template}
    swapped |= {pod.carrier for pod in observed.pods if pod.order}
    swapped |= {stored.revision for stored in observed.revisions if eligibility.has_stager(stored.template)}
    return tuple(pod for pod in observed.pods if pod.carrier in swapped and pod.address and pod.worker.running)


def _rank(pod: Pod) -> int:
    if pod.ready:
        return 4
    if pod.worker.running:
        return 3
    if pod.stage.succeeded:
        return 2
    return 1 if pod.scheduled else 0


def _words(pod: Pod, count: str) -> tuple[str, str]:
    place = f"{pod.name} on {pod.node}"
    match _rank(pod):
        case 4:
            return ROLLING_OUT, f"{count}; waiting for the replicas to be available"
        case 3:
            step = f" ({pod.status.phase})" if pod.status else ""
            return LOADING, f"{count}; {place} loads the model{step}"
        case 2:
            return LOADING, f"{count}; {place} starts its worker"
        case 1:
            return STAGING, f"{count}; {place} stages the weights"
        case _:
            return SCHEDULING, f"{count}; {pod.name} waits for a node"
