"""Calls the Service, through a port-forward so that it works the same on any cluster."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

from dev.kubectl import Kubectl, KubectlError

WAV_HEADER_BYTES = 44


@dataclass(frozen=True)
class Speech:
    """What came back: a wav file and how it was made."""

    wav: bytes
    sample_rate: int
    speech_tokens: int
    speech_tokens_sha256: str
    seed: int
    seconds_taken: float

    @property
    def seconds_of_audio(self) -> float:
        return (len(self.wav) - WAV_HEADER_BYTES) / 2 / self.sample_rate

    @property
    def real_time_factor(self) -> float:
        return self.seconds_taken / self.seconds_of_audio


@contextlib.contextmanager
def port_forward(kubectl: Kubectl, namespace: str, service: str) -> Iterator[str]:
    """The base URL of a Service while the context lasts."""
    with subprocess.Popen(
        [kubectl.program, "-n", namespace, "port-forward", f"service/{service}", ":80", "--address", "127.0.0.1"],
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            port = re.search(r"127\.0\.0\.1:(\d+)", line)
            if port is None:
                raise KubectlError(f"kubectl port-forward service/{service} said: {line.strip() or 'nothing'}")
            yield f"http://127.0.0.1:{port[1]}"
        finally:
            process.terminate()


def authorization(api_key: str | None) -> dict[str, str]:
    """The header that carries an API key."""
    return {} if api_key is None else {"Authorization": f"Bearer {api_key}"}


def say(
    base_url: str, text: str, voice: str | None, seed: int, timeout: float, *, api_key: str | None = None
) -> Speech:
    """POST /v1/audio/speech. Raises urllib.error.HTTPError with the server's problem text."""
    body: dict[str, object] = {"input": text, "response_format": "wav", "seed": seed}
    if voice is not None:
        body["voice"] = voice
    request = urllib.request.Request(  # noqa: S310 - the URL is our own port-forward
        f"{base_url}/v1/audio/speech",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **authorization(api_key)},
    )
    start = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310 - as above
            wav = response.read()
            headers = response.headers
    except urllib.error.HTTPError as error:
        error.msg = f"{error.msg}: {error.read(2000).decode(errors='replace')}"
        raise
    return Speech(
        wav=wav,
        sample_rate=int(headers["X-CosyVoice-Sample-Rate"]),
        speech_tokens=int(headers["X-CosyVoice-Speech-Tokens"]),
        speech_tokens_sha256=headers["X-CosyVoice-Speech-Tokens-Sha256"],
        seed=int(headers["X-CosyVoice-Seed"]),
        seconds_taken=time.monotonic() - start,
    )
