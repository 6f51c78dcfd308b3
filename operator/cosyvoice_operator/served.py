"""From what labels say to what is served: pods that loaded another revision in place still carry their old labels.

What a live ConfigMap and the workers themselves say counts more. So all rules speak of revisions that serve; only who
writes a Deployment has to know of templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cosyvoice_operator import eligibility, order
from cosyvoice_operator.observed import Observed, Pod, ReplicaSet, Workload


def by_what_is_served(seen: Observed) -> Observed:
    """`seen`, read by labels, with the revisions that are served in their place."""
    versions = {stored.revision: stored.version for stored in seen.revisions}
    pods = tuple(_pod(pod, seen, versions) for pod in seen.pods)
    return replace(
        seen,
        pods=pods,
        workload=None if seen.workload is None else _workload(seen.workload, seen, pods),
        replica_sets=tuple(_replica_set(found, seen) for found in seen.replica_sets),
    )


def _pod(pod: Pod, seen: Observed, versions: Mapping[str, str]) -> Pod:
    told = pod.status.revision if pod.status is not None else None
    revision = told if told is not None and _can_serve(pod, told, seen) else seen.loads(pod.revision)
    if revision == pod.revision:
        return pod
    return replace(pod, revision=revision, version=versions.get(revision, pod.version), template=pod.revision)


def _can_serve(pod: Pod, revision: str, seen: Observed) -> bool:
    """Whether to believe a pod, read by its labels, that it serves `revision`: a new version may say anything, and what
    it says must not pass for the word of a pod that serves well.
    """
    carrier, claimed, told = seen.stored(pod.revision), seen.stored(revision), order.parse(pod.order)
    if carrier is None or revision in {pod.revision, seen.loads(pod.revision), told.revision if told else None}:
        return True
    return claimed is not None and eligibility.obstacle(carrier.template, claimed.template) is None


def _workload(workload: Workload, seen: Observed, pods: tuple[Pod, ...]) -> Workload:
    """A pod that serves another revision than the Deployment's pods are to load is not up to date."""
    if workload.revision is None:
        return workload
    revision = seen.loads(workload.revision)
    others = sum(pod.carrier == workload.revision and pod.revision != revision for pod in pods)
    updated = max(0, workload.updated - others)
    template = None if revision == workload.revision else workload.revision
    return replace(workload, revision=revision, updated=updated, template=template)


def _replica_set(found: ReplicaSet, seen: Observed) -> ReplicaSet:
    revision = seen.loads(found.revision)
    return found if revision == found.revision else replace(found, revision=revision, template=found.revision)
