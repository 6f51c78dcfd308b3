"""What `helm test` runs: has every model say a text, and checks what it hears. Needs Python and nothing else."""

from __future__ import annotations

import argparse
import array
import io
import json
import math
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
RATE_HEADER = "X-CosyVoice-Sample-Rate"
# The rates that speech models speak at, in Hz.
RATES = range(16000, 48001)
SHORTEST_SECONDS, LONGEST_SECONDS = 0.2, 120.0
# Of full scale. Room noise in a recording is above it; digital silence and a blown-up nothing are not.
SILENCE_DECIBELS = -60.0
POLL_SECONDS = 2.0


class NotHeardError(Exception):
    """A model did not say what it should; the message says how."""


@dataclass(frozen=True)
class Heard:
    """What a recording is like: `rate` in Hz, `level` in decibels of full scale."""

    rate: int
    seconds: float
    level: float


def listen(recording: bytes, announced_rate: int) -> Heard:
    """Judge a wav file: mono, 16 bits, at the announced rate, whole, long enough, not silent. Raises NotHeardError."""
    try:
        with wave.open(io.BytesIO(recording)) as file:
            shape = (file.getnchannels(), 8 * file.getsampwidth())
            rate, promised = file.getframerate(), file.getnframes()
            samples = array.array("h", file.readframes(promised)) if shape == (1, 16) else array.array("h")
    except (wave.Error, EOFError, ValueError) as error:
        raise NotHeardError(f"no wav file ({error}): {recording[:40]!r}") from error
    if shape != (1, 16):
        raise NotHeardError(f"expected one channel of 16 bits, got {shape[0]} of {shape[1]}")
    if rate != announced_rate or rate not in RATES:
        raise NotHeardError(f"the rate is {rate} Hz, {RATE_HEADER} says {announced_rate}, expected 16000 to 48000")
    if len(samples) != promised:
        raise NotHeardError(f"cut off: {len(samples)} of {promised} samples")
    seconds = len(samples) / rate
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise NotHeardError(f"{seconds:.2f} s of audio, expected {SHORTEST_SECONDS} to {LONGEST_SECONDS:.0f}")
    if sys.byteorder == "big":
        samples.byteswap()
    power = sum(sample * sample for sample in samples) / len(samples)
    level = 10 * math.log10(power / 32768**2) if power else -math.inf
    if level < SILENCE_DECIBELS:
        raise NotHeardError(f"silence: {level:.0f} dB of full scale, expected more than {SILENCE_DECIBELS:.0f}")
    return Heard(rate, seconds, level)


def url_of(model: dict[str, Any]) -> str:
    """Where the model is spoken to."""
    metadata, port = model["metadata"], model["spec"].get("service", {}).get("port", 80)
    return f"http://{metadata['name']}.{metadata['namespace']}.svc:{port}/v1/audio/speech"


def name_of(model: dict[str, Any]) -> str:
    """Namespace and name."""
    return f"{model['metadata']['namespace']}/{model['metadata']['name']}"


def holds(model: dict[str, Any], kind: str) -> bool:
    """Whether the condition is True and is about the spec as it is now."""
    status = model.get("status", {})
    current = status.get("observedGeneration") == model["metadata"]["generation"]
    return current and any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions", ()))


def first_key(folder: Path) -> str:
    """The first API key of a mounted Secret. Raises NotHeardError where there is none."""
    files = sorted(path for path in folder.iterdir() if not path.name.startswith(".."))
    if not files:
        raise NotHeardError("the Secret that test.apiKeysSecret names is empty")
    return files[0].read_text().strip()


def speak(url: str, text: str, voice: str, timeout: float, key: str = "") -> tuple[bytes, int]:
    """The recording, and its rate in Hz as the header has it. Raises NotHeardError."""
    body = {"input": text, "response_format": "wav", "seed": 1} | ({"voice": voice} if voice else {})
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.read(), int(response.headers.get(RATE_HEADER, "0"))
    except urllib.error.HTTPError as error:
        raise NotHeardError(f"{url} answered {error.code}: {error.read(500).decode(errors='replace')}") from error
    except OSError as error:
        raise NotHeardError(f"{url}: {error}") from error


def find_models(namespaces: list[str], names: list[str]) -> list[dict[str, Any]]:
    """The models as the API server has them now. Raises NotHeardError where there is none, or not every one named."""
    scopes = [f"namespaces/{namespace}/" for namespace in namespaces] or [""]
    found = [model for scope in scopes for model in _list(f"/apis/cosyvoice.dev/v1alpha1/{scope}cosyvoicemodels")]
    if missing := set(names) - {model["metadata"]["name"] for model in found}:
        raise NotHeardError(f"there is no CosyVoiceModel {', '.join(sorted(missing))}, which test.models names")
    if not found:
        where = f"the namespaces {', '.join(namespaces)}" if namespaces else "any namespace"
        raise NotHeardError(f"there is no CosyVoiceModel in {where}: apply one, such as examples/narrator.yaml")
    return [model for model in found if not names or model["metadata"]["name"] in names]


def _list(path: str) -> list[dict[str, Any]]:
    server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"}
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(
            urllib.request.Request(server + path, headers=headers), timeout=30, context=trust
        ) as response:
            items: list[dict[str, Any]] = json.load(response)["items"]
            return items
    except OSError as error:
        raise NotHeardError(f"{server}{path}: {error}") from error


def wait_for_models(namespaces: list[str], names: list[str], deadline: float) -> list[dict[str, Any]]:
    """The models, once each serves the version that its spec asks for. Raises NotHeardError at the deadline."""
    while True:
        models = find_models(namespaces, names)
        waiting = [model for model in models if not holds(model, "Ready")]
        if not waiting:
            return models
        if time.monotonic() > deadline:
            status = waiting[0].get("status", {})
            raise NotHeardError(f"{name_of(waiting[0])} is not ready: {status.get('reason')}: {status.get('message')}")
        time.sleep(POLL_SECONDS)


def hear(model: dict[str, Any], text: str, voice: str, timeout: float, key: str = "") -> str:
    """Have one model speak, and describe what was heard. Raises NotHeardError."""
    if model["spec"]["worker"]["replicas"] == 0:
        return "no replicas are wanted, nothing to hear"
    began = time.monotonic()
    heard = listen(*speak(url_of(model), text, voice, timeout, key))
    took = time.monotonic() - began
    audio = f"{heard.seconds:.2f} s at {heard.rate} Hz, {heard.level:.0f} dB of full scale"
    return f"{model['spec']['version']} spoke {audio}, in {took:.2f} s"


def main(arguments: list[str] | None = None) -> int:
    """Listen to every model; 1 if one of them cannot be heard."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", action="append", default=[], help="look here (default: everywhere)")
    parser.add_argument("--model", action="append", default=[], help="listen to this one (default: to all)")
    parser.add_argument("--text", required=True)
    parser.add_argument("--voice", default="")
    parser.add_argument("--api-keys", type=Path, help="folder whose first file is the API key to send (default: none)")
    parser.add_argument("--timeout", type=float, required=True, help="seconds, for each model and each request")
    options = parser.parse_args(arguments)
    failed = False
    try:
        key = first_key(options.api_keys) if options.api_keys else ""
        models = wait_for_models(options.namespace, options.model, time.monotonic() + options.timeout)
    except NotHeardError as error:
        print(error, flush=True)
        return 1
    for model in models:
        try:
            words = hear(model, options.text, options.voice, options.timeout, key)
        except NotHeardError as error:
            failed, words = True, str(error)
        print(f"{name_of(model)}: {words}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
