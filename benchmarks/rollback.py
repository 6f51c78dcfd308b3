"""From the end of a container that cannot load its version to the restored template: how long does a rollback take?

On the local cluster, with the operator in it: a model serves, a version with a missing file is applied, its staging
ends with exit code 66, the operator puts the served version back.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Sequence

from benchmarks._exits import PODS, Ends, Lines
from benchmarks._figures import spread
from benchmarks._recovery import Recovery, recovery
from benchmarks._rounds import choose_rounds, progress
from benchmarks._table import goal, machine, table
from cosyvoice_worker.faults.kit import FAULTS, make_bad
from dev import deploy
from dev.audit import AuditLog
from dev.cluster import build, registry
from dev.cluster.modules import CONTAINERD
from dev.cluster.plan import DEFAULT_NAME, Cluster
from dev.demo import source, target
from dev.playground import Playground

MODEL = "narrator"
FAULT = "missing-file"
OPERATOR = f"system:serviceaccount:{deploy.NAMESPACE}:cosyvoice-operator"
PARTS = ("report", "watch", "decision", "write", "total")
WHAT = {
    "report": "kubelet: end to pod status",
    "watch": "watch: to the operator's pass",
    "decision": "decision: read and judge",
    "write": "write: status, event, template",
    "total": "container's end to restored template",
}


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=30, quick=3)
    local = target.find_local()
    cluster = registry.find(DEFAULT_NAME, registry.default_state_root())
    if cluster is None:
        raise LookupError("the local cluster is down: `make cluster-up`")
    local.kubectl.apply(*deploy.render(operator_image=local.operator_image, worker_image=local.worker_image))
    rollout = ("rollout", "status", "deployment/cosyvoice-operator", "--timeout=180s")
    local.kubectl.run("-n", deploy.NAMESPACE, *rollout, timeout=200)
    with playground(local) as place:
        place.apply_model(MODEL, path=source.TINY_NAME, version="good")
        place.wait_ready(MODEL)
        print(report(measure(rounds, place, cluster)))


@contextlib.contextmanager
def playground(local: target.Target) -> Iterator[Playground]:
    """A namespace with a good and a bad model in its claim, while the context lasts."""
    good, _ = source.make_tiny(registry.default_cache() / "benchmarks")
    shutil.rmtree(good.parent / FAULT, ignore_errors=True)
    make_bad(FAULTS[FAULT], good, good.parent / FAULT)
    place = Playground(local.kubectl, f"rollback-{secrets.token_hex(3)}", good.parent)
    place.create()
    try:
        yield place
    finally:
        place.remove()


def measure(rounds: int, place: Playground, cluster: Cluster) -> list[Recovery]:
    """Apply so many bad versions one after the other; the parts of each rollback."""
    ends, audit = Ends(), AuditLog(cluster.audit_log)
    ctr = build.folder(CONTAINERD, cluster.cache) / "ctr"
    events = [(ctr, "--address", node.socket, "--namespace", "k8s.io", "events") for node in cluster.nodes]
    watch = (place.kubectl.program, "-n", place.namespace, "get", "pods", "--watch", f"--output=jsonpath={PODS}")
    environment = place.kubectl.environment
    with Lines(events, ends.hear_containerd, environment), Lines([watch], ends.hear_watch, environment):
        found = []
        for number in range(rounds):
            found.append(_one(f"bad-{number}", place, ends, audit))
            progress(f"round {number + 1} of {rounds}: {found[-1].total:.3f} s")
        return found


def _one(version: str, place: Playground, ends: Ends, audit: AuditLog) -> Recovery:
    """Apply a bad version and wait until the good one is back."""
    audit.mark()
    before = set(ends.pods)
    place.apply_model(MODEL, path=FAULT, version=version)
    for field, value in (("targetVersion", version), ("reason", "RolledBack")):
        place.run("wait", f"cvm/{MODEL}", f"--for=jsonpath={{.status.{field}}}={value}", "--timeout=120s", timeout=130)
    requests = [each for each in audit.since_mark() if each.namespace == place.namespace]
    return recovery(requests, *ends.first_failure(but=before), model=MODEL, operator=OPERATOR)


def report(recoveries: Sequence[Recovery]) -> str:
    """The table, and the goals."""
    seconds = {part: [float(getattr(each, part)) for each in recoveries] for part in PARTS}
    rows = [[WHAT[part], spread(values).text(3)] for part, values in seconds.items()]
    total = spread(seconds["total"])
    return "\n".join(
        (
            f"{machine()}; the tiny model, {len(recoveries)} rollbacks; median (smallest-largest)",
            "",
            table(("part", "seconds"), rows),
            "",
            goal("container's end to restored template, median, seconds", total.median, 1),
            goal("container's end to restored template, maximum, seconds", total.largest, 3),
        )
    )


if __name__ == "__main__":
    main()
