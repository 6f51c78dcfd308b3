"""A reader at a shell: in a clone of the tree, with the programs on the path that the pages presuppose."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import ROOT


class StuckError(AssertionError):
    """What a page asks for did not work; the message has all that was typed and all that came."""


@dataclass
class Reader:
    """`folder` is the clone and the working directory; `words` are what stands for the placeholders of the pages."""

    folder: Path
    environment: dict[str, str]
    words: dict[str, str] = field(default_factory=dict)

    def type(self, commands: str, *, until: str | None = None, timeout: float = 420, may_fail: bool = False) -> str:
        """Run `commands` as one script; its output, errors included. Raises StuckError unless it `may_fail`.

        A watch (`kubectl get -w`) ends as soon as it shows the line `until`.
        """
        script = self.meant(commands)
        watch = {} if until is None else {"WATCH_UNTIL": until}
        with subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.environment, **watch},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as shell:
            try:
                came, _ = shell.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)  # with all that it has started
                came, _ = shell.communicate()
                raise StuckError(f"{script}\n\ndid not end within {timeout:.0f} s:\n{came}") from None
        if shell.returncode and not may_fail:
            raise StuckError(f"{script}\n\nended with {shell.returncode}:\n{came}")
        return came

    def meant(self, text: str) -> str:
        """The text with the placeholders of the pages replaced."""
        for placeholder, word in self.words.items():
            text = text.replace(placeholder, word)
        return text

    def knows(self, **words: str) -> None:
        """Replace these placeholders from now on."""
        self.words.update(words)


def clone(folder: Path) -> Path:
    """The tree as whoever cloned it has it, with the working directory's changes and its Python environment."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listing.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    # `make` must find the environment up to date, whatever the times of the files: it is that of this very test run.
    for name in ("pyproject.toml", "requirements/dev.txt"):
        os.utime(folder / name, (0, 0))
    return folder


def programs(folder: Path, kubectl: Path, helm: Path) -> dict[str, str]:
    """The environment in which `kubectl`, `helm`, `docker` and the tree's own programs are on the path.

    `docker` is buildah with a registry that the cluster's nodes have already pulled from; `kubectl` is the real one,
    but ends a watch as a reader would (`docker.py`, `watching.py`).
    """
    folder.mkdir()
    scripts = {
        "kubectl": f'exec {sys.executable} -m tests.docs.watching {kubectl} "$@"',
        "docker": f'exec {sys.executable} -m tests.docs.docker "$@"',
    }
    for name, line in scripts.items():
        (folder / name).write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" {line}\n')
        (folder / name).chmod(0o755)
    (folder / "helm").symlink_to(helm)
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE", "PYTEST_"))}
    places = [str(folder), str(ROOT / ".venv" / "bin"), mine["PATH"]]
    helms = {f"HELM_{kind}_HOME": str(folder / "home" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    return {**mine, **helms, "PATH": os.pathsep.join(places), "CURL_HOME": str(folder), "KUBECTL": str(kubectl)}


def connects(reader: Reader, addresses: Mapping[str, str]) -> None:
    """Have curl reach the Services by name, as pods of their namespace do."""
    lines = ["silent", "show-error", "fail"]
    lines += [f'connect-to = "{name}:80:{address}:80"' for name, address in addresses.items()]
    Path(reader.environment["CURL_HOME"], ".curlrc").write_text("\n".join([*lines, ""]))
