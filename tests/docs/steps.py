"""What is done or waited for between the lines of the pages."""

from __future__ import annotations

import os
import shutil
import wave

import numpy as np

from cosyvoice_worker.faults.files import HUGE_FILE
from dev import deploy
from dev.cluster import cgroups
from dev.demo.source import TINY_NAME
from dev.waiting import wait_for
from tests.docs.output import typed
from tests.docs.pages import snippets
from tests.docs.scene import follow
from tests.docs.stage import MODEL, Stage

INSTALL = "docs/install.md"
DEPLOYMENT = f"deployment/{deploy.NAME}"
RELEASE = "charts/cosyvoice --namespace cosyvoice-system"
FIRST = f"helm install cosyvoice {RELEASE} --create-namespace \\\n    --set images.registry=registry.example.com/you\n"
IN_SOME_NAMESPACES = f"{FIRST.rstrip()} --set 'watchNamespaces"
WITHOUT_THE_CRD = f"helm upgrade cosyvoice {RELEASE} --reset-then-reuse-values --set crds.keep=false"

MEMORY_HIGH = "$ kubectl get cvm narrator -o jsonpath"
# A file that takes seconds to copy, and no space before.
SLOW_BYTES = 3 * 2**30


def install(stage: Stage) -> None:
    """What docs/install.md says, up to a running operator."""
    for snippet in snippets(INSTALL):
        if snippet.text.startswith(("docker build", FIRST)):
            follow(snippet, stage)


def audible(file: str, stage: Stage) -> None:
    """There is such a wav file, with sound in it; the next one has to be written anew."""
    path = stage.reader.folder / file
    with wave.open(str(path)) as recording:
        samples = np.frombuffer(recording.readframes(recording.getnframes()), dtype=np.int16)
    assert len(samples) > recording.getframerate() // 4
    assert np.abs(samples).max() > 0, f"{file} is silent"
    path.unlink()


def empty_but_for_namespaces(stage: Stage) -> None:
    """A cluster without the operator."""
    stage.empty()
    stage.namespaces()


def nothing_left(stage: Stage) -> None:
    """Neither models nor their kind."""
    wait_for("the kind to go", lambda: stage.target.kubectl.get("crd", "cosyvoicemodels.cosyvoice.dev") is None)
    stage.bare = True


def without_a_release(name: str, stage: Stage, namespace: str = deploy.NAMESPACE) -> None:
    """The release is gone, as a reader of two alternatives has only one of them."""
    stage.reader.type(f"helm uninstall {name} --namespace {namespace} --wait")


def released_again(stage: Stage) -> None:
    """The release of the page's beginning, after that under another name."""
    without_a_release("tts", stage, "tts-system")
    stage.reader.type(f"{FIRST.rstrip()} --take-ownership")


def own_operator(stage: Stage) -> None:
    """`make run` until it leads; then the one in the cluster again."""
    (snippet,) = [one for one in snippets("CONTRIBUTING.md") if one.text.startswith("make run ARGS=")]
    command = snippet.text.replace("IMAGE", stage.target.worker_image)
    script = (
        f"coproc OPERATOR {{ exec {command} 2>&1; }}\ngrep -m1 '\"leading\"' <&${{OPERATOR[0]}}\nkill $OPERATOR_PID"
    )
    stage.reader.type(script, timeout=120)
    stage.target.kubectl.run("-n", deploy.NAMESPACE, "scale", DEPLOYMENT, "--replicas=1")
    stage.target.kubectl.run("-n", deploy.NAMESPACE, "rollout", "status", DEPLOYMENT, timeout=200)


def voice_ann(stage: Stage) -> None:
    """The operator, and the voice of docs/voices.md, before there is a model: the pods then start with it."""
    stage.no_model()
    (snippet,) = [one for one in snippets("docs/voices.md") if "--configmap" in one.text]
    follow(snippet, stage)


def one_replica(stage: Stage) -> None:
    """Two cores are few."""
    stage.playground.run("scale", "cosyvoicemodel", MODEL, "--replicas=1")


def earlier_revision(stage: Stage) -> None:
    """REVISION is one that was good before."""
    labels = f"cosyvoice.dev/model={MODEL},cosyvoice.dev/version=v1.2.0,cosyvoice.dev/outcome=Good"
    found = stage.playground.get("configmaps", "-l", labels)["items"]
    stage.reader.knows(REVISION=found[0]["metadata"]["labels"]["cosyvoice.dev/revision"])


def unpinned(stage: Stage) -> None:
    """The pin is taken away again, as the page says."""
    stage.reader.type(f"kubectl annotate cvm {MODEL} cosyvoice.dev/rollback-to-", may_fail=True)


def told_of_memory_high(stage: Stage) -> None:
    """The condition is there."""
    wait_for("the condition", lambda: stage.playground.condition(MODEL, "MemoryHighApplied"))


def what_the_kernel_can(stage: Stage) -> None:
    """The page shows what a node with cgroup v2 does; one with v1 says that it has no memory.high."""
    (snippet,) = [one for one in snippets("docs/memory-high.md") if one.language == "console"]
    if cgroups.hierarchies().unified:
        follow(snippet, stage)
    else:
        ((command, _),) = typed(snippet.text)
        beginning = "Unknown NotSupported: "
        wait_for(beginning, lambda: stage.reader.type(command).startswith(beginning), timeout=120)


def tree_as_it_was(stage: Stage) -> None:
    """The clone without the change that docs/development.md makes, and the images of that."""
    stage.installed = False  # the page's `make demo` put its own operator there
    changed = "operator/cosyvoice_operator/app.py"
    if (stage.reader.folder / f"{changed}.before").exists():
        stage.reader.type(f"mv {changed}.before {changed}\nmake cluster-up")


def monitored_kinds(stage: Stage) -> None:
    """A model, and the kinds of the Prometheus operator."""
    stage.any_model()
    for plural, kind in (
        ("servicemonitors", "ServiceMonitor"),
        ("podmonitors", "PodMonitor"),
        ("prometheusrules", "PrometheusRule"),
    ):
        group = "monitoring.coreos.com"
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        stage.target.kubectl.apply(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group}", "labels": {"app.kubernetes.io/part-of": "cosyvoice"}},
                "spec": {
                    "group": group,
                    "scope": "Namespaced",
                    "names": {"plural": plural, "kind": kind},
                    "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
                },
            }
        )


def made_in_the_claim(stage: Stage) -> None:
    """The pod of the page has made the bad copy."""
    stage.playground.run("wait", "pod/make-bad", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s")


def good_weights_again(stage: Stage) -> None:
    """A new version of the good model, which then gets a long warm-up."""
    stage.playground.run("delete", "cosyvoicemodel", MODEL, "--wait=true")
    stage.apply_model("v1.4.0", TINY_NAME)


def slow_staging(stage: Stage) -> None:
    """A version whose files take seconds to copy, however small the model: with a sparse file among them."""
    slow = stage.weights / "slow"
    if not slow.exists():
        shutil.copytree(stage.weights / TINY_NAME, slow)
        (slow / HUGE_FILE).parent.mkdir(exist_ok=True)
        (slow / HUGE_FILE).touch()
        os.truncate(slow / HUGE_FILE, SLOW_BYTES)
    room = {"requests": {"cpu": "50m", "memory": "4Gi"}, "limits": {"memory": "5Gi"}}
    stage.playground.run("delete", "cosyvoicemodel", MODEL, "--wait=true")
    stage.apply_model("v1.5.0", "slow", resources=room, staging={"sizeLimit": "4Gi"})
    runs("stage", stage)


def runs(container: str, stage: Stage) -> None:
    """POD is the one whose container runs."""

    def running(pod: dict[str, object]) -> bool:
        status = dict(pod["status"])  # type: ignore[call-overload]
        found = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        return any(one["name"] == container and "running" in one["state"] for one in found)

    stage.reader.knows(POD=stage.pod(f"runs {container}", running))
