"""The Go modules that the cluster is built from, each pinned by the go.mod and go.sum beside it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "modules"
KUBERNETES_VERSION = "v1.37.2"
CONTAINERD_VERSION = "2.4.2"
# Without these kubelet and API server call themselves v0.0.0 and refuse each other.
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
# No C compiler is needed, binaries run in an empty image, and file paths of the builder stay out of them.
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}


@dataclass(frozen=True)
class Module:
    """One main module: what is built from it and how. `target` is a package, or `tool` for all that go.mod names."""

    name: str
    target: str
    binaries: tuple[str, ...]
    flags: tuple[str, ...] = ("-ldflags", "-s -w")

    @property
    def directory(self) -> Path:
        return HERE / self.name

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files that decide what is built."""
        return tuple(sorted(path for path in self.directory.iterdir() if path.name in ("go.mod", "go.sum", "main.go")))

    @property
    def key(self) -> str:
        """12 hex digits that change whenever the binaries would: from sources and flags."""
        digest = hashlib.sha256(json.dumps([self.target, self.binaries, self.flags, ENVIRONMENT]).encode())
        for path in self.sources:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:12]

    @property
    def go_version(self) -> str:
        """The oldest Go that builds it, such as `1.26.0`."""
        found = re.search(r"^go (\S+)$", (self.directory / "go.mod").read_text(), re.MULTILINE)
        if not found:
            raise ValueError(f"{self.directory / 'go.mod'} has no `go` line")
        return found[1]


def _version_stamps() -> str:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    values = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X {package}.{name}={value}" for package in VERSION_PACKAGES for name, value in values.items()]
    return " ".join(["-s -w ", *stamps])


KUBERNETES = Module(
    "kubernetes",
    "tool",
    # The Go tool names a binary after its package's last element; etcd's is `server`.
    ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl", "server"),
    ("-ldflags", _version_stamps()),
)
CONTAINERD = Module(
    "containerd",
    "tool",
    ("containerd", "containerd-shim-runc-v2", "ctr"),
    (
        *("-tags", "no_btrfs,no_devmapper,no_zfs,no_aufs"),
        *("-ldflags", f"-s -w -X github.com/containerd/containerd/v2/version.Version={CONTAINERD_VERSION}"),
    ),
)
COREDNS = Module("coredns", ".", ("coredns",))
PAUSE = Module("pause", ".", ("pause",))
MODULES = (KUBERNETES, CONTAINERD, COREDNS, PAUSE)
# Not of the cluster, but built in the same way (`dev.helm`). It shares most of its packages with Kubernetes.
HELM_VERSION = "v4.3.2"
HELM = Module(
    "helm", "tool", ("helm",), ("-ldflags", f"-s -w -X helm.sh/helm/v4/internal/version.version={HELM_VERSION}")
)
# The one before it, which is still in use: the chart is linted and rendered with it too.
HELM3_VERSION = "v3.22.0"
HELM3 = Module(
    "helm3", "tool", ("helm",), ("-ldflags", f"-s -w -X helm.sh/helm/v3/internal/version.version={HELM3_VERSION}")
)
