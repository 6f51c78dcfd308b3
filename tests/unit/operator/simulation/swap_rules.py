"""What must hold of live documents and of the orders that pods get to load another revision in place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cosyvoice_operator import names
from tests.unit.operator.simulation.broken import BrokenInvariantError
from tests.unit.operator.simulation.deployments import is_active
from tests.unit.operator.simulation.store import MODEL, Object, label_of

if TYPE_CHECKING:
    from tests.unit.operator.simulation.world import World


class SwapRules:
    """`check_quarantine` raises where a revision may not be tried. `proven` has every revision that some pod served."""

    def __init__(self, world: World, check_quarantine: Callable[[str], None]) -> None:
        self._world = world
        self._check_quarantine = check_quarantine
        self.proven: set[str] = set()

    def on_live(self, raw: Object) -> None:
        """The live ConfigMap of a template is written."""
        template = raw["metadata"]["name"].removeprefix(f"{MODEL}-").removesuffix("-live")
        current = revision_of(raw["data"][names.KEY_CURRENT])
        if current not in self.proven | {template}:
            raise BrokenInvariantError("pods start with what is proven", f"{current} is current, and no pod served it")
        before = self._world.store.get("ConfigMap", raw["metadata"]["name"])
        was = revision_of(before["data"][names.KEY_CURRENT]) if before else template
        if current != was:
            self._check_quarantine(current)
        if names.KEY_CANDIDATE in raw["data"]:
            self._check_quarantine(revision_of(raw["data"][names.KEY_CANDIDATE]))

    def on_order(self, name: str, order: str) -> None:
        """A pod is told to load a revision."""
        target = order.partition(".")[0]
        pod = self._world.store.get("Pod", name)
        if pod is None:
            return
        self._check_quarantine(target)
        template = label_of(pod, names.LABEL_REVISION)
        if target not in {template, *self.documents(template)}:
            raise BrokenInvariantError("an order names a document", f"{name} is told to load {target}, and has none")
        if target not in self.proven and (busy := [other for other in self._trying(target) if other != name]):
            raise BrokenInvariantError("one pod first", f"{name} is told to load {target} while {busy[0]} tries")

    def _trying(self, target: str) -> Iterator[str]:
        """The pods that have an order to load `target` beside what they serve, and have not failed to."""
        for pod in filter(is_active, self._world.store.all("Pod")):
            order = pod["metadata"].get("annotations", {}).get(names.ANNOTATION_SWAP, "")
            run = self._world.kubelets.runs.get(pod["metadata"]["name"])
            if run is None or run.place != "ready" or order.partition(".")[0] != target:
                continue
            if run.swap is None or not order.startswith(f"{run.swap.order}.") or run.swap.due is not None:
                yield pod["metadata"]["name"]

    def documents(self, template: str) -> set[str]:
        """The revisions that the live ConfigMap of `template` has."""
        live = self._world.store.get("ConfigMap", f"{MODEL}-{template}-live")
        return set(map(revision_of, live["data"].values())) if live else set()


def revision_of(document: str) -> str:
    """Which revision a model.json is of."""
    revision: str = json.loads(document)["revision"]
    return revision
