"""What runs inside the cluster from the start: the rights of kube-proxy, and CoreDNS for the names of Services."""

from __future__ import annotations

from typing import Any

from dev.cluster.plan import COREDNS_IMAGE, Cluster

# An unprivileged process may not listen on 53; the Service maps it.
DNS_PORT = 1053
LABELS = {"k8s-app": "kube-dns"}
COREFILE = """\
.:1053 {
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods verified
    }
    cache 2
}
"""


def objects(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        _binding("kube-proxy", "system:node-proxier", {"kind": "User", "name": "system:kube-proxy"}),
        _role(),
        _binding(
            "coredns", "system:coredns", {"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}
        ),
        _named("v1", "ServiceAccount", {}),
        _named("v1", "ConfigMap", {"data": {"Corefile": COREFILE}}),
        _deployment(),
        _service(cluster),
    ]


def _named(api: str, kind: str, content: dict[str, Any], name: str = "coredns") -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "kube-system"}, **content}


def _binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    group = {} if subject["kind"] == "ServiceAccount" else {"apiGroup": "rbac.authorization.k8s.io"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"cosyvoice-cluster:{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{**group, **subject}],
    }


def _role() -> dict[str, Any]:
    verbs = ["list", "watch"]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:coredns"},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": verbs},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs},
        ],
    }


def _deployment() -> dict[str, Any]:
    container = {
        "name": "coredns",
        "image": COREDNS_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"name": "dns", "containerPort": DNS_PORT, "protocol": "UDP"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "20m", "memory": "40Mi"}, "limits": {"memory": "170Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        # Placed at once: not only when the node controller has seen the kubelet become ready.
        "tolerations": [{"operator": "Exists", "key": "node.kubernetes.io/not-ready"}],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    return _named("apps/v1", "Deployment", {"spec": spec})


def _service(cluster: Cluster) -> dict[str, Any]:
    ports = [
        {"name": name, "port": 53, "targetPort": DNS_PORT, "protocol": protocol}
        for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
    ]
    spec = {"clusterIP": cluster.dns_address, "selector": LABELS, "ports": ports}
    return _named("v1", "Service", {"spec": spec}, name="kube-dns")
