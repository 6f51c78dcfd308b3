"""One model on a real API server: operators that die and are replaced, the rest of the cluster played beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Cluster, Object
from tests.apiserver.control_plane import ControlPlane
from tests.apiserver.deployment_controller import DeploymentController
from tests.apiserver.kubelet import Kubelet
from tests.apiserver.mortal_proxy import Death, MortalProxy
from tests.apiserver.operator_process import OperatorProcess
from tests.apiserver.world import claim

MODEL = "narrator"
RESYNC_SECONDS = 1
IDLE_PASSES = 2
IDLE_STEPS = 2
STEP_SECONDS = 0.05
PATIENCE_SECONDS = 120.0


class Episode:
    """A model in a namespace of its own. At most one operator works on it at a time; `died` were killed so far.

    `failures`: for a version, the termination message of its worker.
    """

    def __init__(
        self,
        plane: ControlPlane,
        admin: Cluster,
        namespace: str,
        logs: Path,
        failures: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.admin = admin
        self.namespace = namespace
        self.died = 0
        self._written: list[str] = []
        self._plane = plane
        self._logs = logs
        self._controller = DeploymentController(admin, namespace, MODEL)
        self._kubelet = Kubelet(admin, namespace, failures)
        self._proxy: MortalProxy | None = None
        self._deaths: Iterator[Death] = iter(())
        self._before: set[str] = set()
        self._idle_steps = 0

    async def __aenter__(self) -> Self:
        done = await asyncio.to_thread(self._plane.kubectl, "create", "namespace", self.namespace)
        assert done.returncode == 0, done.stderr
        await self.admin.create(claim(self.namespace))
        self._playing = asyncio.create_task(self._play())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._playing.cancel()
        await asyncio.gather(self._playing, return_exceptions=True)
        if self._proxy:
            await self._end_life(self._proxy)

    async def start_operator(self) -> None:
        """From now on an operator is there."""
        await self._begin_life()
        self._arm()

    @property
    def writes(self) -> list[str]:
        """What all operators wrote so far, as `METHOD path`."""
        return [*self._written, *(self._proxy.writes if self._proxy else ())]

    async def apply(self, **spec: Any) -> None:
        """The user applies the model."""
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": MODEL, "namespace": self.namespace},
            "spec": {"source": {"uri": "pvc://voices/model"}, **spec},
        }
        await self.put(manifest)

    async def put(self, manifest: Object) -> None:
        """Anyone applies an object."""
        await self.admin.apply(manifest)
        self._touched()

    async def doom(self, deaths: Iterable[Death]) -> None:
        """This operator and its successors die at `deaths`, one each, as far as they get there."""
        self._before = await self.pods()
        self._deaths = iter(deaths)
        self._arm()

    async def untouched(self) -> int:
        """How many pods of before the first death are still there."""
        return len(self._before & await self.pods())

    def kernel_says(self, **memory_high: Any) -> None:
        """From now on every worker reads this back of memory.high."""
        self._kubelet.memory_high = memory_high
        self._touched()

    async def pods(self) -> set[str]:
        """The uids of the pods."""
        return {pod["metadata"]["uid"] for pod in await self.admin.list("Pod", self.namespace)}

    async def told(self) -> list[tuple[str, str]]:
        """Reason and message of every event on the model."""
        return [(event["reason"], event["message"]) for event in await self.admin.list("Event", self.namespace)]

    async def settle(self) -> None:
        """Wait until an operator lives that finds nothing more to do. Raises TimeoutError where none ever does."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            # An operator may die while it is asked whether the model is at rest.
            while not (self._is_idle() and await self._is_at_rest() and self._is_idle()):
                if self._proxy and self._proxy.killed:
                    self.died += 1
                    await self._end_life(self._proxy)
                    await self.start_operator()
                assert not self._proxy or self._operator.process.poll() is None, self._log.read_text()
                assert not self._playing.done(), self._playing.exception()
                await asyncio.sleep(STEP_SECONDS)
        failed = [line for line in self._log.read_text().splitlines() if "pass failed" in line] if self._proxy else []
        assert failed == []

    def _is_idle(self) -> bool:
        if self._idle_steps < IDLE_STEPS:
            return False
        return not self._proxy or (self._proxy.passes >= IDLE_PASSES and not self._proxy.killed)

    async def _is_at_rest(self) -> bool:
        """Whether the status is about the newest spec, and nothing is under way: who waits for an answer looks idle."""
        model = await self.admin.get(names.KIND, self.namespace, MODEL)
        if self._proxy is None or model is None:
            return True
        status = model.get("status", {})
        progressing = [found["status"] for found in status.get("conditions", ()) if found["type"] == "Progressing"]
        rests = status.get("observedGeneration") == model["metadata"]["generation"] and progressing == ["False"]
        if not rests:
            self._touched()
        return rests

    def _arm(self) -> None:
        if self._proxy and (death := next(self._deaths, None)):
            self._proxy.arm(death)

    async def _begin_life(self) -> None:
        self._proxy = await MortalProxy(
            self._plane,
            self.namespace,
            kill=self._kill,
            worker_status=self._kubelet.worker_status,
        ).__aenter__()
        name = f"{self.namespace}-{self.died}"
        self._log = self._logs / f"{name}.log"
        self._operator = OperatorProcess(
            self._plane,
            self._log,
            self.namespace,
            name,
            f"--resync-seconds={RESYNC_SECONDS}",
            kubeconfig=self._proxy.write_kubeconfig(self._logs / f"{name}.kubeconfig"),
        )

    def _kill(self) -> None:
        self._operator.kill()

    async def _end_life(self, proxy: MortalProxy) -> None:
        self._operator.kill()
        await proxy.__aexit__()
        self._written += proxy.writes
        self._proxy = None

    async def _play(self) -> None:
        """The controllers and kubelets, as fast as they can; whatever they do, the operator has to look at."""
        written = 0
        while True:
            if await self._controller.step() or await self._kubelet.step():
                self._touched()
            elif written != len(self.writes):
                self._idle_steps, written = 0, len(self.writes)
            else:
                self._idle_steps += 1
                await asyncio.sleep(STEP_SECONDS)

    def _touched(self) -> None:
        """Something changed: nobody is idle until the operator and the rest of the cluster have looked again."""
        self._idle_steps = 0
        if self._proxy:
            self._proxy.passes = 0
