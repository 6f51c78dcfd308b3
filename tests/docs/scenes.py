"""For each page with commands: what its reader finds, and what happens between the lines.

A page that is not here and has something to type fails, and so does a name here that is on no page.
"""

from __future__ import annotations

from functools import partial

from dev.demo.source import TINY_NAME
from tests.docs import steps
from tests.docs.scene import Scene
from tests.docs.stage import Stage
from tests.docs.transcript import WHEN_A_VERSION_IS_BAD

# What stands on the pages, and what it is here. Two nodes share one small machine without a GPU.
SMALL = (
    "--set modelDefaults.device=cpu --set modelDefaults.stageMemory=512Mi --set modelDefaults.workerMemoryRequest=700Mi"
)
WORDS = {
    "helm install cosyvoice charts/cosyvoice": f"helm install cosyvoice charts/cosyvoice {SMALL}",
    "helm install tts charts/cosyvoice": f"helm install tts charts/cosyvoice {SMALL}",
    "--build-arg DEVICE=cuda ": "",  # as the page says for clusters without GPUs
    "/models/CosyVoice2-0.5B": TINY_NAME,
    "--model DIR": f"--model {TINY_NAME}",
    "WORKER_IMAGE": "registry.example.com/you/cosyvoice-worker:0.1.0",
    "spec.nodeName=NODE": "spec.nodeName=node1",
    "--users 1 4 40 --characters 20 200 --seconds 12": "--users 1 --characters 20 --seconds 2",
}

SCENES: dict[str, Scene] = {
    "README.md": Scene(
        world=Stage.empty,
        at_last=("apiVersion: cosyvoice.dev/v1alpha1", "kubectl get cvm"),
        after={
            "make demo": partial(steps.audible, "narrator.wav"),
            "make demo MODEL_DIR": Stage.reachable,
            "curl -o hello.wav": partial(steps.audible, "hello.wav"),
            "cosyvoice-worker synthesize": partial(steps.audible, "hello.wav"),
        },
    ),
    "docs/development.md": Scene(
        after={"make demo": partial(steps.audible, "narrator.wav")},
        end=steps.tree_as_it_was,
        long=True,
    ),
    steps.INSTALL: Scene(
        world=steps.empty_but_for_namespaces,
        before={
            steps.IN_SOME_NAMESPACES: partial(steps.without_a_release, "cosyvoice"),
            steps.WITHOUT_THE_CRD: steps.released_again,
        },
        after={steps.WITHOUT_THE_CRD: steps.nothing_left},
    ),
    "CONTRIBUTING.md": Scene(world=Stage.operator, instead={"make run ARGS=": steps.own_operator}),
    "docs/user-guide.md": Scene(
        world=steps.voice_ann,
        before={"kubectl annotate cvm narrator cosyvoice.dev/rollback-to": steps.earlier_revision},
        after={
            "apiVersion: cosyvoice.dev/v1alpha1": steps.one_replica,
            "kubectl get cvm narrator -o wide --watch": Stage.reachable,
            "curl -o hello.wav": partial(steps.audible, "hello.wav"),
            "spec:": Stage.ready,
        },
        end=steps.unpinned,
    ),
    "docs/memory-high.md": Scene(
        world=Stage.any_model,
        after={"spec:": steps.told_of_memory_high},
        instead={steps.MEMORY_HIGH: steps.what_the_kernel_can},
        at_last=(steps.MEMORY_HIGH,),
    ),
    "docs/metrics-and-alerts.md": Scene(world=steps.monitored_kinds),
    "docs/voices.md": Scene(
        world=Stage.operator, after={"cosyvoice-worker synthesize": partial(steps.audible, "hello.wav")}
    ),
    "docs/benchmarks.md": Scene(world=Stage.model),
    "docs/rehearsing-failures.md": Scene(
        world=Stage.model,
        before={
            "engine:": steps.good_weights_again,
            "kubectl exec POD -c worker": partial(steps.runs, "worker"),
            "kubectl exec POD -c stage": steps.slow_staging,
        },
        after={"apiVersion: v1": steps.made_in_the_claim},
    ),
    "docs/when-a-version-is-bad.md": WHEN_A_VERSION_IS_BAD,
    "docs/api.md": Scene(world=Stage.operator),
}
