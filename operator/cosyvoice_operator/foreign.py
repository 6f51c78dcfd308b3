"""Annotations that others put into the Deployment's template, such as `kubectl rollout restart` does.

A ReplicaSet is taken back into service only where the template is as it was. So on the way to a revision that has one,
foreign annotations get the values they have there, and those it does not know go: else pods that run would be replaced
by pods of the same revision.
"""

from __future__ import annotations

from collections.abc import Mapping

from cosyvoice_operator.observed import Observed


def changes(observed: Observed, revision: str) -> Mapping[str, str | None]:
    """What has to change before the Deployment gets the template of `revision`: values by annotation, None: it goes."""
    workload, stored = observed.workload, observed.stored(revision)
    if workload is None or stored is None or workload.carrier == revision:
        return {}
    replica_sets = [found for found in observed.replica_sets if found.carrier == revision]
    if not replica_sets:
        return {}
    kept = max(replica_sets, key=lambda found: found.replicas).annotations
    ours = (stored.template.get("metadata") or {}).get("annotations") or {}
    candidates = (workload.annotations.keys() | kept.keys()) - ours.keys()
    wanted = {name: kept.get(name) for name in sorted(candidates)}
    return {name: value for name, value in wanted.items() if value != workload.annotations.get(name)}
