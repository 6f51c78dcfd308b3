"""The command lines of etcd, API server, controller manager, scheduler and kube-proxy. Pure but for `write`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dev.cluster import credentials
from dev.cluster.plan import API_PORT, Cluster

ETCD_URL = "http://127.0.0.1:2379"
ETCD_PEER_URL = "http://127.0.0.1:2380"
ISSUER = "https://kubernetes.default.svc.cluster.local"
# How long a silent node counts as alive, and how long its pods stay: seconds, so that tests need not wait minutes, but
# more than a busy two-core machine may keep a kubelet from reporting.
NODE_GRACE = "24s"
TOLERATION_SECONDS = 15
# Never reached: whoever reads the log from a position would lose it when the file is rotated.
AUDIT_MEGABYTES = 100_000
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def audit_policy_file(cluster: Cluster) -> Path:
    return cluster.state / "audit-policy.json"


def proxy_file(cluster: Cluster) -> Path:
    return cluster.state / "kube-proxy.json"


def write(cluster: Cluster) -> None:
    """Write the files that the command lines name."""
    audit_policy_file(cluster).write_text(json.dumps(AUDIT_POLICY))
    proxy_file(cluster).write_text(json.dumps(proxy_configuration(cluster)))


def etcd(cluster: Cluster) -> list[str]:
    """etcd without fsync: its data does not outlive the cluster."""
    return [
        *("--name=local", f"--data-dir={cluster.state / 'etcd'}", "--unsafe-no-fsync", "--logger=zap"),
        *(f"--listen-client-urls={ETCD_URL}", f"--advertise-client-urls={ETCD_URL}"),
        *(f"--listen-peer-urls={ETCD_PEER_URL}", f"--initial-advertise-peer-urls={ETCD_PEER_URL}"),
        f"--initial-cluster=local={ETCD_PEER_URL}",
    ]


def api_server(cluster: Cluster) -> list[str]:
    pki = credentials.directory(cluster)
    return [
        f"--etcd-servers={ETCD_URL}",
        *(f"--bind-address={cluster.api_address}", f"--advertise-address={cluster.api_address}"),
        f"--secure-port={API_PORT}",
        *(f"--tls-cert-file={pki / 'apiserver.crt'}", f"--tls-private-key-file={pki / 'apiserver.key'}"),
        *(f"--client-ca-file={pki / 'ca.crt'}", f"--token-auth-file={pki / 'tokens.csv'}"),
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        f"--service-cluster-ip-range={cluster.service_subnet}",
        "--allow-privileged=true",
        f"--default-not-ready-toleration-seconds={TOLERATION_SECONDS}",
        f"--default-unreachable-toleration-seconds={TOLERATION_SECONDS}",
        *(f"--audit-log-path={cluster.audit_log}", f"--audit-policy-file={audit_policy_file(cluster)}"),
        f"--audit-log-maxsize={AUDIT_MEGABYTES}",
        "--shutdown-delay-duration=0s",
    ]


def controller_manager(cluster: Cluster) -> list[str]:
    pki = credentials.directory(cluster)
    return [
        *_identity(cluster, credentials.CONTROLLER_MANAGER),
        f"--cert-dir={cluster.state / 'controller-manager'}",
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        "--use-service-account-credentials=true",
        f"--node-monitor-grace-period={NODE_GRACE}",
        "--node-monitor-period=2s",
        # It makes the directory, by default on the machine.
        f"--flex-volume-plugin-dir={cluster.state / 'controller-manager' / 'volume-plugins'}",
    ]


def scheduler(cluster: Cluster) -> list[str]:
    return [*_identity(cluster, credentials.SCHEDULER), f"--cert-dir={cluster.state / 'scheduler'}"]


def proxy(cluster: Cluster) -> list[str]:
    """One kube-proxy serves all nodes: they share the network namespace that holds its rules."""
    return [f"--config={proxy_file(cluster)}", f"--hostname-override={cluster.nodes[0].name}"]


def proxy_configuration(cluster: Cluster) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        # Only its own node's pods are local to this kube-proxy, and else only those reach themselves through a Service.
        "nftables": {"masqueradeAll": True},
        "clusterCIDR": cluster.pod_subnet,
        "clientConnection": {"kubeconfig": str(credentials.kubeconfig_of(cluster, credentials.PROXY))},
        # The connection tracking table is the machine's, not ours to resize.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def _identity(cluster: Cluster, user: str) -> list[str]:
    kubeconfig = credentials.kubeconfig_of(cluster, user)
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]
