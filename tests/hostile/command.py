"""Runs the worker's own commands on hostile files, with memory bounded: what a header claims cannot be had.

`cosyvoice-worker synthesize` needs torch, whose import takes seconds: its processes are forked from one that has it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.__main__ import main

MIB = 1024 * 1024
# Beyond what a process has mapped when it begins. The files are a few megabytes at most.
MEMORY_BYTES = 1024 * MIB
TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it said."""

    code: int | None
    said: str


# A root directory like the machine's, with one more in it: the claim, where a pod has it mounted.
_IN_A_POD = """
root=$1 claim=$2; shift 2
mount -t tmpfs none "$root"
for path in /*; do
  if [ -L "$path" ]; then cp -P "$path" "$root$path"
  elif [ -d "$path" ]; then mkdir "$root$path" && mount --rbind "$path" "$root$path"; fi
done
mkdir "$root/source" && mount --bind "$claim" "$root/source"
exec chroot "$root" "$@"
"""


def stage(document: bytes, claim: Path, folder: Path) -> Ended:
    """`cosyvoice-worker stage` with `document` as model.json, in a root directory whose /source is `claim`.

    What it said is its termination message.
    """
    config, termination_log, root = folder / "model.json", folder / "termination-log", folder / "root"
    config.write_bytes(document)
    termination_log.touch()
    root.mkdir()
    options = ["--config", config, "--root", folder / "tmpfs", "--termination-log", termination_log]
    pod = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", _IN_A_POD, "sh", str(root), str(claim)]
    ended = _run("stage", *map(str, options), before=pod)
    return Ended(ended.code, json.loads(termination_log.read_text() or '{"message": null}')["message"] or ended.said)


def make_voice(recording: Path, folder: Path) -> Ended:
    """`cosyvoice-worker make-voice` of `recording`."""
    options = ["--model", folder, "--audio", recording, "--text", "", "--out", folder]
    return _run("make-voice", *map(str, options), "ann")


def _run(*words: str, before: Sequence[str] = ()) -> Ended:
    bound = ["prlimit", f"--as={MEMORY_BYTES}"]
    command = [*before, *bound, sys.executable, "-m", "cosyvoice_worker", *words]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_SECONDS, check=False)
    return Ended(ended.returncode, ended.stderr)


def synthesize(model: Path, folder: Path) -> Ended:
    """`cosyvoice-worker synthesize` with the model directory `model`."""
    words = ["synthesize", "--model", str(model), "--text", "Hello.", "--out", str(folder / "out.wav")]
    log = folder / "said"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cosyvoice_worker.engine.synthesis", "cosyvoice_worker.models.cosyvoice2.load"])
    process = context.Process(target=_forked, args=(words, log))
    process.start()
    process.join(TIMEOUT_SECONDS)
    process.kill()
    return Ended(process.exitcode, log.read_text())


def _forked(words: Sequence[str], log: Path) -> None:
    told = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(told, sys.stderr.fileno())
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES,) * 2)
    sys.exit(main(words))
