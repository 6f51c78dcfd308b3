"""The scheduler, the kubelets and the workers: how a pod fares, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cosyvoice_operator import names
from tests.unit.operator.simulation import swaps
from tests.unit.operator.simulation.fates import (
    DEATH,
    FLAKY_TRIES,
    LOAD_ENDS,
    OTHER_BYTES,
    STAGE_ENDS,
    STAGED,
    End,
    Fate,
)
from tests.unit.operator.simulation.pods import Document, Run, status_of
from tests.unit.operator.simulation.store import MODEL, NAMESPACE, Object, Store, label_of, timestamp

MOUNT, STAGE, LOAD, DEATH_AFTER = (timedelta(seconds=seconds) for seconds in (1, 3, 4, 3))
REFRESH_AFTER = timedelta(seconds=1)  # a pod's annotation changed
REFRESH_EVERY = timedelta(seconds=60)
LONGEST_BACKOFF = 300
TOLERATION = timedelta(seconds=300)  # of a pod to its node's silence
LONG_RUN = timedelta(seconds=600)  # after which a container that ends is started again soon
MOST_RESTARTS = 6  # so that a history ends: what failed so often is left lying


@dataclass
class Nodes:
    """How many pods each node takes, and which do not answer since when. `room`: a second engine fits into a worker."""

    slots: dict[str, int] = field(default_factory=lambda: {"node1": 3, "node2": 3})
    down: dict[str, datetime] = field(default_factory=dict)
    room: bool = True


class Kubelets:
    """`fate` tells how the pod `ordinal` of a version fares, `digest` what its source has; `evict` deletes a pod."""

    def __init__(
        self,
        store: Store,
        fate: Callable[[str, int], Fate],
        digest: Callable[[str], str],
        evict: Callable[[Object, datetime], None],
    ) -> None:
        self._store = store
        self._digest = digest
        self._fate = fate
        self._evict = evict
        self._ordinals: dict[str, int] = {}
        self.runs: dict[str, Run] = {}
        self.nodes = Nodes()

    def step(self, now: datetime) -> None:
        """Place what has no node; then move every pod whose time has come."""
        for pod in self._store.all("Pod"):
            if _is_over(pod):
                continue
            run = self.runs.get(pod["metadata"]["name"])
            if run is None:
                self._schedule(pod, now)
            elif (since := self.nodes.down.get(pod["spec"]["nodeName"])) is not None:
                if since + TOLERATION <= now:
                    self._evict(pod, now)
            else:
                self._work(pod, run, now)

    def next_time(self, now: datetime) -> datetime | None:
        """When the next pod moves by itself."""
        times = [since + TOLERATION for since in self.nodes.down.values()]
        for pod in self._store.all("Pod"):
            run = self.runs.get(pod["metadata"]["name"])
            if run is not None and not _is_over(pod) and pod["spec"]["nodeName"] not in self.nodes.down:
                swap = run.swap.due if run.swap else None
                times += [due for due in (run.due, run.refresh_at, swap) if due is not None]
        return min((time for time in times if time > now), default=None)

    def crash(self, pod: Object, now: datetime) -> None:
        """The worker of a pod that loads or serves dies."""
        run = self.runs.get(pod["metadata"]["name"])
        if run is not None and run.place in {"ready", "loading"} and not _is_over(pod):
            self._end_worker(run, DEATH, now)
            self._report(pod, run)

    def lose(self, pod: Object, reason: str) -> None:
        """The pod as a whole fails: evicted, preempted."""
        if not _is_over(pod):
            self._store.put({**pod, "status": {"phase": "Failed", "reason": reason, "message": f"pod was {reason}"}})

    def set_down(self, node: str, down: bool, now: datetime) -> None:
        """A node stops to answer, or answers again."""
        if not down:
            self.nodes.down.pop(node, None)
        elif node not in self.nodes.down:
            self.nodes.down[node] = now
        ready = {"type": "Ready", "status": "Unknown" if down else "True", "reason": "NodeStatusUnknown"}
        self._store.put({"kind": "Node", "metadata": {"name": node}, "status": {"conditions": [ready]}})
        for pod in self._store.all("Pod"):
            run = self.runs.get(pod["metadata"]["name"])
            if run is not None and pod["spec"].get("nodeName") == node and not _is_over(pod):
                run.since = now
                self._report(pod, run)

    def reconsider(self, version: str, now: datetime) -> None:
        """The fate of a version turned: what waits for ever tries again."""
        for pod in self._store.all("Pod"):
            run = self.runs.get(pod["metadata"]["name"])
            if run is None or run.place == "ready":
                continue
            loads = run.loads or next(iter(run.mounted), None)
            if loads is not None and loads.version == version:
                run.due = run.due or now + MOUNT

    def worker_answer(self, name: str) -> bytes | None:
        """What the worker of this pod says of itself on /status."""
        pod, run = self._store.get("Pod", name), self.runs.get(name)
        if pod is None or run is None or run.loads is None or run.place not in {"loading", "ready"}:
            return None
        if pod["spec"]["nodeName"] in self.nodes.down:
            return None
        phase = "Ready" if run.place == "ready" else "Map"
        engine = {"revision": run.loads.revision, "digest": run.digest, "swap": swaps.told(run)}
        return json.dumps({"schema": 1, "phase": phase, "load": {"map": 1.0, "total": 4.0}, **engine}).encode()

    def _schedule(self, pod: Object, now: datetime) -> None:
        taken = [
            raw["spec"].get("nodeName") for raw in self._store.all("Pod") if raw["status"].get("phase") != "Failed"
        ]
        free = {
            node: slots - taken.count(node)
            for node, slots in self.nodes.slots.items()
            if node not in self.nodes.down and slots > taken.count(node)
        }
        if not free:
            message = f"0/{len(self.nodes.slots)} nodes are available: Insufficient nvidia.com/gpu."
            refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            self._store.put({**pod, "status": {"phase": "Pending", "conditions": [refused]}})
            return
        version = label_of(pod, names.LABEL_VERSION)
        self._ordinals[version] = ordinal = self._ordinals.get(version, -1) + 1
        run = Run(ordinal, due=now + MOUNT, since=now)
        self.runs[pod["metadata"]["name"]] = run
        node = max(free, key=lambda name: (free[name], name))
        self._report({**pod, "spec": {**pod["spec"], "nodeName": node}}, run)

    def _work(self, pod: Object, run: Run, now: datetime) -> None:
        """What is due in a pod whose node works."""
        if run.place == "mounting" or (run.refresh_at is not None and run.refresh_at <= now):
            self._mount(pod, run)
        elif _order(pod) != run.order:
            run.refresh_at = min(run.refresh_at or now + REFRESH_AFTER, now + REFRESH_AFTER)
        elif run.refresh_at is None and self._live(pod) != run.live:
            run.refresh_at = now + REFRESH_EVERY
        swaps.take(run, now, room=self.nodes.room)
        if run.swap is not None and run.swap.due is not None and run.swap.due <= now:
            version = run.swap.document.version
            swaps.move(run, self._fate(version, run.ordinal), self._digest(version), now)
        if run.due is not None and run.due <= now:
            self._move(pod, run, now)

    def _mount(self, pod: Object, run: Run) -> None:
        """Bring the pod's configuration: the documents of its live ConfigMap, its own one, and its order."""
        own = Document(label_of(pod, names.LABEL_REVISION), label_of(pod, names.LABEL_VERSION))
        run.live = self._live(pod)
        texts = [run.live[key] for key in (names.KEY_CURRENT, names.KEY_CANDIDATE) if key in run.live]
        run.mounted = (*map(_document, texts), own)
        run.order, run.refresh_at = _order(pod), None

    def _live(self, pod: Object) -> Object:
        """What the live ConfigMap of the pod's template has."""
        live = self._store.get("ConfigMap", f"{MODEL}-{label_of(pod, names.LABEL_REVISION)}-live")
        return live["data"] if live else {}

    def _move(self, pod: Object, run: Run, now: datetime) -> None:
        loads = run.loads or (run.mounted[0] if run.mounted else None)
        fate = self._fate(loads.version if loads else label_of(pod, names.LABEL_VERSION), run.ordinal)
        match run.place:
            case "mounting" if fate in {Fate.IMAGE, Fate.CONFIG, Fate.MOUNT}:
                self._keep_waiting(pod, run, fate, now)
                return
            case "mounting" | "stage-backoff":
                run.stage.restarts += run.place == "stage-backoff"
                run.loads = run.staged = run.mounted[0]
                self._enter(run, "staging", now, STAGE)
            case "staging" if (end := self._stage_end(run, fate)) is not None:
                run.stage.ends(end, now)
                self._back_off(run, "stage-backoff", run.stage.ends_in_a_row, now)
            case "staging":
                run.digest = self._digest(run.loads.version)
                run.stage.ends(replace(STAGED, digest=run.digest), now)
                run.has.add(run.loads.revision)
                self._enter(run, "loading", now, LOAD)
            case "worker-backoff":
                run.worker.restarts += 1
                current = run.mounted[0]
                run.loads = current if current.revision in run.has else run.staged
                self._enter(run, "loading", now, LOAD)
            case "loading":
                self._load(run, fate, now)
            case _:  # ready, and it dies
                self._end_worker(run, DEATH, now)
        self._report(pod, run)

    def _stage_end(self, run: Run, fate: Fate) -> End | None:
        """How staging ends, unless well."""
        document = run.loads
        if document is not None and document.pin not in {None, self._digest(document.version)}:
            return OTHER_BYTES
        return STAGE_ENDS.get(fate)

    def _load(self, run: Run, fate: Fate, now: datetime) -> None:
        end = LOAD_ENDS.get(fate)
        if fate is Fate.HANG:
            run.due = None
        elif end is None or (fate is Fate.FLAKY and run.worker.restarts >= FLAKY_TRIES):
            self._enter(run, "ready", now, DEATH_AFTER if fate is Fate.DIES else None)
        else:
            self._end_worker(run, end, now)

    def _end_worker(self, run: Run, end: End, now: datetime) -> None:
        if run.place == "ready" and run.since is not None and now - run.since >= LONG_RUN:
            run.worker.ends_in_a_row = 0
        run.worker.ends(end, now)
        swaps.interrupt(run)
        self._back_off(run, "worker-backoff", run.worker.ends_in_a_row, now)

    def _back_off(self, run: Run, place: str, ends: int, now: datetime) -> None:
        seconds = min(5 * 2**ends, LONGEST_BACKOFF)
        self._enter(run, place, now, timedelta(seconds=seconds) if ends <= MOST_RESTARTS else None)

    def _enter(self, run: Run, place: str, now: datetime, stay: timedelta | None) -> None:
        run.place, run.since, run.due = place, now, None if stay is None else now + stay

    def _keep_waiting(self, pod: Object, run: Run, fate: Fate, now: datetime) -> None:
        run.due = None
        if fate is Fate.MOUNT:
            name = pod["metadata"]["name"]
            event = {"involvedObject": {"name": name}, "reason": "FailedMount", "lastTimestamp": timestamp(now)}
            metadata = {"name": f"{name}.mount", "namespace": NAMESPACE}
            self._store.put({"kind": "Event", "metadata": metadata, "message": "no such volume", **event})
            return
        self._report(pod, run, "ImagePullBackOff" if fate is Fate.IMAGE else "CreateContainerConfigError")

    def _report(self, pod: Object, run: Run, waiting: str = "PodInitializing") -> None:
        up = pod["spec"]["nodeName"] not in self.nodes.down
        self._store.put({**pod, "status": status_of(pod, run, up=up, waiting=waiting)})


def _document(text: str) -> Document:
    said = json.loads(text)
    return Document(said["revision"], said["version"], said["source"]["digest"])


def _order(pod: Object) -> str | None:
    order: str | None = pod["metadata"].get("annotations", {}).get(names.ANNOTATION_SWAP)
    return order


def _is_over(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") == "Failed"
