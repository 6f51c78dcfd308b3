"""Helm as the tests and the demo use it: the pinned one, built once with Go into the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dev.cluster import build, registry
from dev.cluster.modules import HELM, HELM3

CHART = Path(__file__).parents[1] / "charts" / "cosyvoice"


class HelmError(Exception):
    """Helm refused; the message holds what was run and what it said."""


@dataclass(frozen=True)
class Helm:
    """`program` with `kubeconfig`; without one it renders and lints only."""

    program: Path
    kubeconfig: Path | None = None
    environment: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # A kubeconfig of the user's must play no part in rendering, nor plugins and settings in anything.
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
        mine["KUBECONFIG"] = str(self.kubeconfig or os.devnull)
        object.__setattr__(self, "environment", mine)

    def run(self, *arguments: str, values: dict[str, Any] | None = None, timeout: float = 120) -> str:
        """Standard output of `helm ARGUMENTS`, with `values` as one more values file. Raises HelmError."""
        words = [str(self.program), *arguments]
        if values is not None:
            words += ["--values", "-"]
        done = subprocess.run(
            words,
            input=None if values is None else yaml.safe_dump(values),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            said = f"{done.stderr.strip()}\n{done.stdout.strip()}".strip()
            raise HelmError(f"helm {' '.join(arguments)} ended with {done.returncode}:\n{said}")
        return done.stdout

    def template(
        self,
        release: str,
        namespace: str,
        values: dict[str, Any] | None = None,
        *flags: str,
    ) -> list[dict[str, Any]]:
        """What the chart renders to, in the order in which Helm applies it."""
        rendered = self.run("template", release, str(CHART), "--namespace", namespace, *flags, values=values or {})
        return [document for document in yaml.safe_load_all(rendered) if document]


def find(kubeconfig: Path | None = None) -> Helm:
    """The pinned Helm; the first time it is built, which takes a minute or two."""
    return Helm(build.built(HELM, registry.default_cache(), say) / "helm", kubeconfig)


def find_helm3() -> Helm:
    """The last Helm 3, built in the same way; it renders and lints."""
    return Helm(build.built(HELM3, registry.default_cache(), say) / "helm")


def say(line: str) -> None:
    """Tell progress."""
    print(line, file=sys.stderr, flush=True)
