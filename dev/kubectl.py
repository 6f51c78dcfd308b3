"""kubectl as a value: every step of the demo is a command its reader could type."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class KubectlError(Exception):
    """kubectl ended with an error; the message holds the command and what it printed."""


@dataclass(frozen=True)
class Kubectl:
    """A kubectl binary with a kubeconfig."""

    program: str
    kubeconfig: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
        """Standard output of `kubectl ARGUMENTS`. Raises KubectlError."""
        done = subprocess.run(
            [self.program, *arguments],
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)} failed ({done.returncode}):\n{done.stderr.strip()}")
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """The parsed object or list; None where it does not exist."""
        try:
            return json.loads(self.run("get", *arguments, "-o", "json"))
        except KubectlError as error:
            if "NotFound" in str(error) or "not found" in str(error):
                return None
            raise

    def apply(self, *manifests: dict[str, Any]) -> str:
        """Apply manifests as one stream of YAML documents."""
        return self.run("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests, sort_keys=False))
