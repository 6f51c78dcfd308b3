"""A real etcd and a real kube-apiserver on loopback ports of their own: no nodes, no controllers, only the API."""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from dev.cluster import build, registry
from dev.cluster.modules import KUBERNETES

START_SECONDS = 120.0
ADMIN = "admin"
# The user that the operator's service account is, so that its RBAC is what it runs under.
OPERATOR = "system:serviceaccount:cosyvoice-system:cosyvoice-operator"
OPERATOR_GROUPS = "system:serviceaccounts,system:serviceaccounts:cosyvoice-system,system:authenticated"


class ControlPlaneError(Exception):
    """The API server did not come up; the message holds the end of its log."""


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class ControlPlane:
    """`binaries` is the folder of `server` (etcd), `kube-apiserver` and `kubectl`; all files go to `directory`."""

    binaries: Path
    directory: Path
    port: int = field(default_factory=free_port)
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    operator_token: str = field(default_factory=lambda: secrets.token_hex(16))
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def audit_log(self) -> Path:
        return self.directory / "audit.log"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a cluster administrator."""
        return self.directory / "kubeconfig"

    @property
    def operator_kubeconfig(self) -> Path:
        """The kubeconfig of the operator's service account."""
        return self.directory / "operator.kubeconfig"

    def writes(self, namespace: str, user: str = OPERATOR) -> list[str]:
        """Every request of `user` in the namespace so far that writes, as `verb resource[/subresource] name`."""
        found = []
        for line in self.audit_log.read_text().splitlines():
            event = json.loads(line)
            target = event.get("objectRef", {})
            ours = event["user"]["username"] == user and target.get("namespace") == namespace
            if ours and event["verb"] not in {"get", "list", "watch"}:
                resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
                found.append(f"{event['verb']} {resource} {target.get('name', '')}".strip())
        return found

    def start(self) -> None:
        """Start both and wait until the API server is ready. Raises ControlPlaneError."""
        etcd, peer = free_port(), free_port()
        self._write_files()
        self._spawn(
            "server",
            "--name=test",
            f"--data-dir={self.directory / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=test=http://127.0.0.1:{peer}",
        )
        self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.directory / 'pki'}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.directory / 'sa.key'}",
            f"--service-account-signing-key-file={self.directory / 'sa.key'}",
            "--service-cluster-ip-range=10.96.0.0/24",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            f"--audit-log-path={self.audit_log}",
            f"--audit-policy-file={self.directory / 'audit.yaml'}",
            "--shutdown-delay-duration=0s",
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            dead = [process for process in self._processes if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                log = (self.directory / "kube-apiserver.log").read_text(errors="replace")[-2000:]
                raise ControlPlaneError(f"the API server is not ready (ended: {len(dead)}):\n{log}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End both, the API server first."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """`kubectl ARGUMENTS` as the administrator; the caller looks at the exit code."""
        return subprocess.run(
            [self.binaries / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def _write_files(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        users = f'{self.token},{ADMIN},1,"system:masters"\n{self.operator_token},{OPERATOR},2,"{OPERATOR_GROUPS}"\n'
        (self.directory / "tokens.csv").write_text(users)
        key = self.directory / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
        (self.directory / "audit.yaml").write_text(json.dumps({**policy, "omitStages": ["RequestReceived"]}))
        self._write_kubeconfig(self.kubeconfig, self.token)
        self._write_kubeconfig(self.operator_kubeconfig, self.operator_token)

    def _write_kubeconfig(self, path: Path, token: str) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.server, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
            "current-context": "test",
        }
        path.write_text(yaml.safe_dump(config))

    def _spawn(self, binary: str, *arguments: str) -> None:
        with (self.directory / f"{binary}.log").open("wb") as log:
            process = subprocess.Popen([self.binaries / binary, *arguments], stdout=log, stderr=log)
        self._processes.append(process)

    def _is_ready(self) -> bool:
        unverified = ssl.create_default_context()  # the certificate is one that the server made for itself
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.server}/readyz", headers=headers)  # noqa: S310 - an https URL of ours
        try:
            with urllib.request.urlopen(request, timeout=2, context=unverified) as response:  # noqa: S310 - the same
                return bool(response.status == 200)
        except OSError:
            return False


@contextmanager
def running(directory: Path) -> Iterator[ControlPlane]:
    """A control plane of the local cluster's binaries for the context. Raises ControlPlaneError for want of them."""
    cache = registry.default_cache()
    if not build.is_built(KUBERNETES, cache):
        raise ControlPlaneError(f"no Kubernetes binaries in {cache}: `make cluster-up` builds them")
    plane = ControlPlane(build.folder(KUBERNETES, cache), directory)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
