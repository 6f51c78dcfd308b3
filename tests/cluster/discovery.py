"""Prometheus' own configuration for what the chart's monitors select.

The selection is done by Prometheus, with the rules that the Prometheus operator makes of a monitor. What there is to
select from is read here, with the labels of its discovery in Kubernetes, which Debian builds Prometheus without.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dev.kubectl import Kubectl

Object = dict[str, Any]

META = "__meta_kubernetes_"


def worker_job(monitor: Object, kubectl: Kubectl) -> Object:
    """A scrape job for a PodMonitor with one endpoint."""
    spec = monitor["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    pods = [
        pod
        for namespace in spec["namespaceSelector"]["matchNames"]
        for pod in kubectl.get("pods", "-n", namespace)["items"]
    ]
    return {
        "job_name": "workers",
        "static_configs": [target for pod in pods for target in _ports_of(pod)],
        "relabel_configs": [
            *_selected("pod", spec["selector"]),
            _keep("pod_container_port_name", endpoint["port"]),
            *_named(),
            *(_renamed(rule) for rule in endpoint["relabelings"]),
        ],
    }


def operator_job(monitor: Object, kubectl: Kubectl) -> Object:
    """A scrape job for a ServiceMonitor with one endpoint, which looks in its own namespace."""
    spec, namespace = monitor["spec"], monitor["metadata"]["namespace"]
    (endpoint,) = spec["endpoints"]
    services = {one["metadata"]["name"]: one for one in kubectl.get("services", "-n", namespace)["items"]}
    slices = kubectl.get("endpointslices", "-n", namespace)["items"]
    return {
        "job_name": "operator",
        "static_configs": [target for one in slices for target in _endpoints_of(one, services)],
        "relabel_configs": [
            *_selected("service", spec["selector"]),
            _keep("endpointslice_port_name", endpoint["port"]),
            *_named(),
        ],
    }


def kubelet_job(kubectl: Kubectl, namespace: str, folder: Path) -> Object:
    """A scrape job for cAdvisor in the kubelets, through the API server. `folder` gets its certificate authority.

    cAdvisor asks containerd for the names of containers at a path where a node of the local cluster has none: so those
    of `namespace` get their names here.
    """
    config = yaml.safe_load(Path(kubectl.kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = folder / "ca.crt"
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    nodes = [node["metadata"]["name"] for node in kubectl.get("nodes")["items"]]
    return {
        "job_name": "kubelets",
        "scheme": "https",
        "authorization": {"credentials": user["token"]},
        "tls_config": {"ca_file": str(authority)},
        "honor_timestamps": False,
        "static_configs": [
            {
                "targets": [cluster["server"].removeprefix("https://")],
                "labels": {"__metrics_path__": f"/api/v1/nodes/{node}/proxy/metrics/cadvisor", "node": node},
            }
            for node in nodes
        ],
        "metric_relabel_configs": [
            {"source_labels": ["__name__"], "regex": "container_(memory|spec_memory)_.*", "action": "keep"},
            *(rule for pod in kubectl.get("pods", "-n", namespace)["items"] for rule in _container_names(pod)),
        ],
    }


def _container_names(pod: Object) -> Iterator[Object]:
    for container in pod["status"]["containerStatuses"]:
        id_ = container["containerID"].rpartition("/")[2]
        names = {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}
        for label, name in (names | {"container": container["name"]}).items():
            # The last one of these makes it a container with a name, which is left alone.
            yield {
                "source_labels": ["container", "id"],
                "regex": f";.*/{id_}",
                "target_label": label,
                "replacement": name,
            }


def _ports_of(pod: Object) -> Iterator[Object]:
    """As the role `pod` has them: a target for each port."""
    metadata = pod["metadata"]
    labels = {
        f"{META}namespace": metadata["namespace"],
        f"{META}pod_name": metadata["name"],
        **_labels("pod", metadata),
    }
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", []):
            target = f"{pod['status']['podIP']}:{port['containerPort']}"
            yield {"targets": [target], "labels": labels | {f"{META}pod_container_port_name": port["name"]}}


def _endpoints_of(slice_: Object, services: dict[str, Object]) -> Iterator[Object]:
    """As the role `endpointslice` has them: a target for each port of each endpoint."""
    metadata = slice_["metadata"]
    service = services[metadata["labels"]["kubernetes.io/service-name"]]
    for endpoint in slice_["endpoints"]:
        labels = {
            f"{META}namespace": metadata["namespace"],
            f"{META}pod_name": endpoint["targetRef"]["name"],
            **_labels("service", service["metadata"]),
        }
        for port in slice_["ports"]:
            targets = [f"{address}:{port['port']}" for address in endpoint["addresses"]]
            yield {"targets": targets, "labels": labels | {f"{META}endpointslice_port_name": port["name"]}}


def _labels(what: str, metadata: Object) -> dict[str, str]:
    there = metadata.get("labels", {})
    present = {f"{META}{what}_labelpresent_{_plain(name)}": "true" for name in there}
    return present | {f"{META}{what}_label_{_plain(name)}": value for name, value in there.items()}


def _selected(what: str, selector: Object) -> list[Object]:
    labels = [_keep(f"{what}_label_{_plain(name)}", value) for name, value in selector["matchLabels"].items()]
    present = [one["key"] for one in selector.get("matchExpressions", []) if one["operator"] == "Exists"]
    return [*labels, *(_keep(f"{what}_labelpresent_{_plain(name)}", "true") for name in present)]


def _named() -> list[Object]:
    """What the Prometheus operator adds to every target."""
    return [
        {"source_labels": [f"{META}namespace"], "target_label": "namespace"},
        {"source_labels": [f"{META}pod_name"], "target_label": "pod"},
    ]


def _renamed(rule: Object) -> Object:
    return {"source_labels": rule["sourceLabels"], "target_label": rule["targetLabel"]}


def _keep(label: str, value: str) -> Object:
    return {"source_labels": [META + label], "regex": value, "action": "keep"}


def _plain(label: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in label)
