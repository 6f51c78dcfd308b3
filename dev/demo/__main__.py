"""From nothing to speech on Kubernetes: cluster, images, a small model, a voice, one apply, and a wav file."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import urllib.error
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dev import deploy
from dev.cluster.registry import default_cache
from dev.demo import report, source, speak, target, watch
from dev.demo.target import Target, TargetError
from dev.kubectl import KubectlError
from dev.waiting import WaitError, wait_for

ROOT = Path(__file__).parents[2]
NAMESPACE = "speech"
MODEL = "narrator"
VOICE = "demo"
TEXT = "Hello there, this is the narrator, and it speaks from Kubernetes."
SEED = 7
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True)
class Wish:
    """What the user asked for: a published model of theirs, or (all None) the small one."""

    model_directory: Path | None
    prompt: Path | None
    prompt_text: str
    output: Path

    @property
    def published(self) -> bool:
        return self.model_directory is not None


def main() -> int:
    """Run the demo; 1 when it ends without speech, with what to look at."""
    try:
        run(read_wish(os.environ))
    except (TargetError, KubectlError, WaitError, watch.NotReadyError, urllib.error.HTTPError) as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"\nThe demo stopped: `{' '.join(map(str, error.cmd))}` failed ({error.returncode})", file=sys.stderr)
        return 1
    return 0


def read_wish(environment: Any) -> Wish:
    """The wish in MODEL_DIR, PROMPT, PROMPT_TEXT and OUTPUT; `--help` explains them."""
    parser = argparse.ArgumentParser(
        prog="make demo",
        description=__doc__,
        epilog="Variables: MODEL_DIR, PROMPT, PROMPT_TEXT (a published model and a recording); OUTPUT (narrator.wav); "
        "KUBECONFIG and IMAGE_REGISTRY (a cluster of yours).",
    )
    parser.parse_args()
    directory = environment.get("MODEL_DIR") or None
    prompt = environment.get("PROMPT") or None
    if directory is not None and prompt is None:
        raise TargetError("MODEL_DIR is set, PROMPT is not: a published model ships no voice, so a recording is needed")
    if directory is not None and not Path(directory).is_dir():
        raise TargetError(f"MODEL_DIR={directory} is no directory")
    return Wish(
        model_directory=Path(directory).resolve() if directory else None,
        prompt=Path(prompt).resolve() if prompt else None,
        prompt_text=environment.get("PROMPT_TEXT", ""),
        output=Path(environment.get("OUTPUT") or "narrator.wav"),
    )


def run(wish: Wish) -> None:
    """The demo, step by step."""
    say("The cluster and the images")
    where = target.prepare()

    say("The weights and a voice")
    model_directory, prompt, prompt_text = find_weights(wish)
    if wish.published:
        print("  On a CPU the published model speaks about ten times slower than real time. One replica.")
    else:
        print(f"  {model_directory}: CosyVoice2's published layout, small, with random weights: its voice is noise.")
    prepare_namespace(where, model_directory)
    # Server-side: a longer recording would not fit into client-side apply's annotation.
    apply = ("apply", "--server-side", f"--field-manager=voice-{VOICE}", "-f", "-")
    where.kubectl.run(*apply, stdin=make_voice(model_directory, prompt, prompt_text))

    say("The operator")
    memory = "5Gi" if wish.published else deploy.SMALL_STAGE_MEMORY
    objects = deploy.render(
        operator_image=where.operator_image, worker_image=where.worker_image, device="cpu", stage_memory=memory
    )
    where.kubectl.apply(*objects)
    where.kubectl.run(
        "-n", deploy.NAMESPACE, "rollout", "status", "deployment/cosyvoice-operator", "--timeout=180s", timeout=200
    )

    manifest = narrator(single=wish.published or not where.local, directory=model_directory.name)
    say(f"kubectl apply -f examples/{MODEL}.yaml")
    where.kubectl.run("-n", NAMESPACE, "delete", "cosyvoicemodel", MODEL, "--ignore-not-found", "--wait=true")
    print(f"  {where.kubectl.run('-n', NAMESPACE, 'apply', '-f', '-', stdin=yaml.safe_dump(manifest)).strip()}")
    model = watch.until_ready(where.kubectl, NAMESPACE, MODEL, timeout=1800 if wish.published else 300)
    pods = where.kubectl.get("-n", NAMESPACE, "pods", "-l", f"cosyvoice.dev/model={MODEL}")["items"]

    say("Where the time went")
    for part, seconds in report.timeline(model, pods[0]):
        print(f"  {part:<24} {seconds:7.2f} s")

    say(f"POST http://{MODEL}/v1/audio/speech")
    with speak.port_forward(where.kubectl, NAMESPACE, MODEL) as url:
        speech = speak.say(url, TEXT, VOICE, SEED, timeout=900 if wish.published else 120)
    wish.output.write_bytes(speech.wav)
    for line in report.speech_lines(speech):
        print(f"  {line}")
    print(f"\nWrote {wish.output}. Look around with:\n")
    print(f"  export KUBECONFIG={where.kubectl.kubeconfig}\n  {where.kubectl.program} -n {NAMESPACE} get cvm -o wide")


def find_weights(wish: Wish) -> tuple[Path, Path, str]:
    """The model directory, a recording and what it says: the user's or the small ones, which are made here."""
    if wish.model_directory is not None and wish.prompt is not None:
        return wish.model_directory, wish.prompt, wish.prompt_text
    model_directory, recording = source.make_tiny(default_cache() / "demo")
    return model_directory, recording, source.TINY_PROMPT_TEXT


def prepare_namespace(where: Target, model_directory: Path) -> None:
    """A namespace under Pod Security `restricted`, and in it the claim `voices` with the model."""
    kubectl = where.kubectl
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}},
    )
    wait_for(
        "the namespace's service account", lambda: kubectl.get("-n", NAMESPACE, "serviceaccount", "default"), timeout=30
    )
    if where.local:
        source.give_up_other_volume(kubectl, NAMESPACE, model_directory.parent)
        kubectl.apply(*source.shared_volume(NAMESPACE, model_directory.parent))
        return
    kubectl.apply(source.dynamic_claim(NAMESPACE), source.loader_pod(NAMESPACE, where.worker_image))
    source.upload(kubectl, NAMESPACE, model_directory)


def make_voice(model_directory: Path, recording: Path, text: str) -> str:
    """The ConfigMap of voices with one voice, as `cosyvoice-worker make-voice` prints it."""
    done = subprocess.run(
        [
            sys.executable, "-m", "cosyvoice_worker", "make-voice", "--model", model_directory, "--audio", recording,
            "--text", text, "--configmap", MODEL, "--namespace", NAMESPACE, VOICE,
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )  # fmt: skip
    return done.stdout


def narrator(*, single: bool, directory: str) -> dict[str, Any]:
    """examples/narrator.yaml, with the weights' directory and, where asked for, one replica."""
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "examples" / f"{MODEL}.yaml").read_text())
    manifest["spec"]["source"]["uri"] = f"pvc://{source.CLAIM}/{directory}"
    if single:
        manifest["spec"].setdefault("worker", {})["replicas"] = 1
    return manifest


def say(step: str) -> None:
    """Announce a step."""
    print(f"\n=== {step}  [{time.strftime('%H:%M:%S')}]", flush=True)


if __name__ == "__main__":
    sys.exit(main())
