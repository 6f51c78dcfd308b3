"""Everything that a model, its pods, the operator and the cluster have said: where nothing secret may stand."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path

from dev import deploy
from dev.kubectl import KubectlError
from dev.playground import Playground

# All kinds of the namespace but Secrets.
KINDS = (
    "cosyvoicemodels,deployments,replicasets,pods,services,endpointslices,poddisruptionbudgets,configmaps,events,"
    "serviceaccounts,persistentvolumeclaims,controllerrevisions"
)
# Of every process of a container, and what the kernel lets its neighbours see of it.
PROCESSES = """
import contextlib, glob
for name in ("environ", "cmdline"):
    for path in glob.glob(f"/proc/[0-9]*/{name}"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            print(path, open(path, "rb").read().replace(b"\\0", b" ").decode(errors="replace"))
"""


def said(playground: Playground, model: str, cluster_logs: Path) -> Mapping[str, str]:
    """Texts by where they are from."""
    return dict(_said(playground, model, cluster_logs))


def _said(playground: Playground, model: str, cluster_logs: Path) -> Iterator[tuple[str, str]]:
    yield "objects", playground.run("get", KINDS, "-o", "yaml", "--show-managed-fields")
    yield "description", playground.run("describe", "cosyvoicemodel,deployment,pod")
    operator = ("-n", deploy.NAMESPACE)
    yield "operator's log", playground.kubectl.run(*operator, "logs", "deployment/cosyvoice-operator", "--tail=-1")
    yield "operator's objects", playground.kubectl.run(*operator, "get", "pods,configmaps,events,leases", "-o", "yaml")
    for pod in playground.pods(model):
        name = pod["metadata"]["name"]
        yield f"log of {name}", playground.run("logs", name, "--all-containers", "--tail=-1")
        yield f"log of {name} before", _log_before(playground, name)
        yield f"processes of {name}", playground.run("exec", name, "-c", "worker", "--", "python3", "-c", PROCESSES)
        for page in ("status", "metrics", "health"):
            raw = f"/api/v1/namespaces/{playground.namespace}/pods/{name}:8081/proxy/{page}"
            yield f"/{page} of {name}", playground.run("get", "--raw", raw)
    for path in cluster_logs.glob("*.log"):
        yield f"cluster's {path.name}", path.read_text(errors="replace")


def _log_before(playground: Playground, pod: str) -> str:
    """Of the container before this one, where there was one."""
    try:
        return playground.run("logs", pod, "-c", "worker", "--previous", "--tail=-1")
    except KubectlError:
        return ""


def places_of(secret: str, texts: Mapping[str, str]) -> list[str]:
    """Where a secret stands, as it is or in base64 as Kubernetes writes them."""
    written = {secret, base64.b64encode(secret.encode()).decode()}
    return [place for place, text in texts.items() if any(form in text for form in written)]
