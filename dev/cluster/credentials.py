"""Who may do what in the cluster: a certificate authority, service account keys, tokens and kubeconfig files."""

from __future__ import annotations

import base64
import json
import secrets
from pathlib import Path

from dev.cluster.plan import Cluster, Node
from dev.cluster.shell import run

ADMIN, CONTROLLER_MANAGER, SCHEDULER, PROXY = "admin", "controller-manager", "scheduler", "proxy"
VALID_DAYS = "3650"
# Python 3.13 refuses certificates without key identifiers and key usage.
AUTHORITY = """
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""
LEAF = """
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


def directory(cluster: Cluster) -> Path:
    return cluster.state / "pki"


def create(cluster: Cluster) -> None:
    """Write everything below `pki/` and the user's kubeconfig."""
    pki = directory(cluster)
    pki.mkdir(mode=0o700)
    _certificate(pki, "ca", "/CN=cosyvoice-operator local cluster", AUTHORITY)
    alternatives = [
        *(f"DNS:{name}" for name in ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")),
        "DNS:kubernetes.default.svc.cluster.local",
        *(f"IP:{address}" for address in (cluster.api_address, cluster.api_service_address, "127.0.0.1")),
    ]
    server = f"{LEAF}extendedKeyUsage = serverAuth\nsubjectAltName = {','.join(alternatives)}\n"
    _certificate(pki, "apiserver", "/CN=kube-apiserver", server, signed=True)
    client = f"{LEAF}extendedKeyUsage = clientAuth\n"
    _certificate(pki, "kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", client, signed=True)
    _key(pki / "service-accounts.key")
    run(["openssl", "pkey", "-in", pki / "service-accounts.key", "-pubout", "-out", pki / "service-accounts.pub"])
    _tokens(cluster, pki)


def kubeconfig_of(cluster: Cluster, user: str) -> Path:
    """The kubeconfig of a component."""
    return directory(cluster) / f"{user}.kubeconfig"


def node_user(node: Node) -> str:
    return f"system:node:{node.name}"


def _tokens(cluster: Cluster, pki: Path) -> None:
    users = {
        ADMIN: ("admin", "system:masters"),
        CONTROLLER_MANAGER: ("system:kube-controller-manager", ""),
        SCHEDULER: ("system:kube-scheduler", ""),
        PROXY: ("system:kube-proxy", ""),
        **{node.name: (node_user(node), "system:nodes") for node in cluster.nodes},
    }
    lines = []
    authority = (pki / "ca.crt").read_text()
    for name, (user, group) in users.items():
        token = secrets.token_urlsafe(24)
        lines.append(f'{token},{user},{name},"{group}"')
        _private(kubeconfig_of(cluster, name), _kubeconfig(cluster, token, authority))
    _private(pki / "tokens.csv", "\n".join(lines) + "\n")
    _private(cluster.kubeconfig, kubeconfig_of(cluster, ADMIN).read_text())


def _kubeconfig(cluster: Cluster, token: str, authority: str) -> str:
    encoded = base64.b64encode(authority.encode()).decode()
    name = f"cosyvoice-{cluster.name}"
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": cluster.api_url, "certificate-authority-data": encoded}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        },
        indent=1,
    )


def _certificate(pki: Path, name: str, subject: str, extensions: str, *, signed: bool = False) -> None:
    """Make `<name>.key` and `<name>.crt`, signed by the authority or by itself."""
    key, request, written = pki / f"{name}.key", pki / f"{name}.csr", pki / f"{name}.cnf"
    _key(key)
    written.write_text(extensions)
    run(["openssl", "req", "-new", "-key", key, "-subj", subject, "-out", request])
    sign: list[str | Path] = ["openssl", "x509", "-req", "-in", request, "-sha256", "-days", VALID_DAYS]
    sign += ["-extfile", written, "-out", pki / f"{name}.crt"]
    sign += ["-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAcreateserial"] if signed else ["-signkey", key]
    run(sign)
    request.unlink()
    written.unlink()


def _key(path: Path) -> None:
    run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path])


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
