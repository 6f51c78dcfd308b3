"""The local cluster as the pages' reader finds it: empty, or with the operator, a claim of weights and a model."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dev import deploy
from dev.demo.source import CLAIM, TINY_NAME, shared_volume
from dev.demo.target import Target
from dev.playground import RESOURCES, RESTRICTED, Playground
from dev.waiting import wait_for
from tests.docs.reader import Reader, connects
from tests.docs.record import Record

logger = logging.getLogger(__name__)
NAMESPACE = "speech"
MODEL = "narrator"
PRESUPPOSED = (NAMESPACE, "radio")
MADE = (deploy.NAMESPACE, "tts-system", "cosyvoice-nodes")


@dataclass
class Stage:
    """The cluster, its reader, and `weights`: what the claim `voices` of the namespace `speech` shows to pods.

    `install` does what docs/install.md says up to a running operator.
    """

    target: Target
    reader: Reader
    weights: Path
    install: Callable[[Stage], None]
    installed: bool = field(default=False, init=False)
    bare: bool = field(default=False, init=False)  # neither operator nor models, but the namespaces and the claim
    record: Record | None = field(default=None, init=False)

    @property
    def playground(self) -> Playground:
        """The reader's namespace."""
        return Playground(self.target.kubectl, NAMESPACE, self.weights)

    def empty(self, *, wait: bool = True) -> None:
        """Remove every model, the operator however it came, and the namespaces of the pages."""
        kubectl = self.target.kubectl
        self.installed = self.bare = False
        kubectl.run("delete", "crd", "cosyvoicemodels.cosyvoice.dev", "--ignore-not-found", timeout=200)
        for namespace in (*PRESUPPOSED, *MADE):
            # Before the namespace, whose controller looks again only after half of the time that pods may take to end.
            kinds = "deployment,daemonset,replicaset,pod"
            kubectl.run("-n", namespace, "delete", kinds, "--all", "--grace-period=1", timeout=200)
        gone = ("--ignore-not-found", f"--wait={wait}".lower())
        kubectl.run("delete", "namespace", *PRESUPPOSED, *MADE, *gone, timeout=300)
        kubectl.run("delete", "persistentvolume", f"{NAMESPACE}-{CLAIM}", *gone)
        kinds = "clusterrole,clusterrolebinding"
        kubectl.run("delete", kinds, "-l", "app.kubernetes.io/part-of=cosyvoice", "--ignore-not-found")

    def namespaces(self) -> None:
        """The namespaces that the pages presuppose, and in that of the models the claim of weights."""
        for name in PRESUPPOSED:
            metadata = {"name": name, "labels": RESTRICTED}
            self.target.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        wait_for("the default service account", lambda: self.playground.get("serviceaccount", "default"))
        objects = shared_volume(NAMESPACE, self.weights)
        for one in objects:
            one["spec"]["accessModes"] = ["ReadWriteMany"]
        self.target.kubectl.apply(*objects)

    def operator(self) -> None:
        """The operator as docs/install.md installs it, unless an earlier page had it installed."""
        if not self.installed:
            began = time.monotonic()
            if not self.bare:
                self.empty()
                self.namespaces()
            emptied = time.monotonic()
            self.install(self)
            self.installed, self.bare = True, False
            logger.info("%.1f s to empty, %.1f s to install", emptied - began, time.monotonic() - emptied)

    def no_model(self) -> None:
        """The operator, and nothing of an earlier page beside it."""
        self.operator()
        place = self.playground
        place.run("delete", "cosyvoicemodel", "--all", "--wait=true")
        # A container that a page has stopped would take its time to end.
        place.run("delete", "configmap,pod", "--all", "--grace-period=1", "--wait=true")

    def model(self, **spec: Any) -> None:
        """The operator and the model of the pages, new and ready, or still as an earlier page's reader found it."""
        if spec or not self.installed or not self._as_it_was_made():
            self.no_model()
            self.apply_model("v1.2.0", TINY_NAME, **spec)
        self.ready()

    def any_model(self) -> None:
        """The operator and some model of that name."""
        if not self.installed or self.playground.get("cosyvoicemodel", MODEL) is None:
            self.model()

    def _as_it_was_made(self) -> bool:
        """Whether nobody has changed the spec of the model since it was made (here: with one replica)."""
        found = self.playground.get("cosyvoicemodel", MODEL)
        if found is None:
            return False
        spec = found["spec"]
        return (found["metadata"]["generation"], spec["version"], spec["worker"]["replicas"]) == (1, "v1.2.0", 1)

    def apply_model(
        self, version: str, path: str, *, replicas: int = 1, resources: Any = RESOURCES, **spec: Any
    ) -> None:
        """Ask for a version of the model whose weights lie at `path` of the claim."""
        worker = {"replicas": replicas, "resources": resources}
        self.playground.apply_model(MODEL, path=path, version=version, worker=worker, **spec)

    def status(self) -> dict[str, Any]:
        """The model's status."""
        status: dict[str, Any] = self.playground.model(MODEL).get("status", {})
        return status

    def ready(self) -> None:
        """Wait until the version that the spec asks for serves; curl then finds it by its name."""
        self.playground.wait_ready(MODEL)
        self.reachable()

    def reason(self, reason: str) -> None:
        """Wait until the model's status has this reason for the spec as it is now."""

        def probe() -> bool:
            model = self.playground.model(MODEL)
            status: dict[str, Any] = model.get("status", {})
            return (status.get("observedGeneration"), status.get("reason")) == (model["metadata"]["generation"], reason)

        wait_for(f"{reason} of {MODEL}", probe, timeout=180)

    def reachable(self) -> None:
        """Have curl find the model's Service."""
        address = self.playground.get("service", MODEL)["spec"]["clusterIP"]
        connects(self.reader, {MODEL: address})
        self.reader.knows(**{"http://SERVICE": f"http://{address}"})

    def apply(self, text: str) -> None:
        """What a reader does with a yaml block: apply a manifest, or change these fields of his model."""
        document = yaml.safe_load(self.reader.meant(text))
        if "apiVersion" in document:
            self.playground.run("apply", "-f", "-", stdin=json.dumps(document))
        elif "scrape_configs" in document:
            for job in document["scrape_configs"]:
                # Debian's Prometheus is built without discovery in Kubernetes.
                assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
            (self.reader.folder / "prometheus.yml").write_text(yaml.safe_dump(document))
            self.reader.type("promtool check config prometheus.yml")
        else:
            patch = document if "spec" in document else {"spec": document}
            self.playground.run("patch", "cosyvoicemodel", MODEL, "--type=merge", "-p", json.dumps(patch))

    def pod(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> str:
        """The name of the first pod of the model of which this holds, as soon as there is one."""

        def probe() -> str | None:
            return next((pod["metadata"]["name"] for pod in self.playground.pods(MODEL) if holds(pod)), None)

        return str(wait_for(f"a pod that {what}", probe, timeout=120, every=0.1))


def copies(folder: Path, models: dict[str, Path]) -> Path:
    """A folder with copies of models, to which a pod's user may write."""
    for name, model in models.items():
        shutil.copytree(model, folder / name)
    folder.chmod(0o777)
    return folder
