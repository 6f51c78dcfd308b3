"""A client that calls a Service without pause and without a second try, and checks every reply whole.

`python -m dev.traffic http://10.96.0.7 --connection kept` writes one JSON line a reply until it gets a SIGTERM. It ends
then with the reply it is in. A request that fails is told as such and never sent again; the next one is another. The
API key in the environment variable COSYVOICE_API_KEY, where there is one, is sent along.

Whole means: as long as its Content-Length, or ended by the terminating chunk; a wav header whose length is that of the
samples; the speech tokens and the sound that this text and seed always give with one version's weights (`Reply.sound`).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import signal
import struct
import sys
import time
import urllib.parse
from dataclasses import asdict, dataclass, replace

from cosyvoice_worker.names import HEADER_SPEECH_TOKENS, HEADER_SPEECH_TOKENS_SHA256, HEADER_VERSION
from cosyvoice_worker.wav import HEADER_BYTES

SPEECH = "/v1/audio/speech"
# One or two seconds of work for the small model alone, two to five beside another client.
TEXT = (
    "Versions come and go, and while they do nobody who listens hears as much as a single word cut off: "
    "this sentence ends as it began."
)
SEED = 5
TIMEOUT_SECONDS = 60.0
# An argument could be read by every process of the machine.
API_KEY_VARIABLE = "COSYVOICE_API_KEY"


@dataclass(frozen=True)
class Reply:
    """What became of one request. `error` is None if it came whole; times are seconds since the epoch."""

    began: float
    seconds: float
    stream: bool
    version: str | None = None
    tokens: int | None = None
    tokens_sha256: str | None = None
    samples: int = 0
    audio_sha256: str | None = None
    error: str | None = None

    @property
    def sound(self) -> tuple[object, ...]:
        """The same for every whole reply of one version, and another for each other version."""
        return (self.stream, self.tokens, self.tokens_sha256, self.samples, self.audio_sha256)


class BadReplyError(Exception):
    """A reply that came, but is not what was asked for."""


class Client:
    """One connection after the other to `netloc`: kept as long as the server keeps it, or a new one each time."""

    def __init__(self, netloc: str, *, keep: bool, api_key: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(netloc, timeout=TIMEOUT_SECONDS)
        self._keep = keep
        self._api_key = api_key

    def speak(self, *, stream: bool) -> Reply:
        """Ask once."""
        start = time.monotonic()
        reply = Reply(began=time.time(), seconds=0.0, stream=stream)
        try:
            reply = self._ask(reply)
        except (OSError, http.client.HTTPException, BadReplyError) as error:
            self._connection.close()
            reply = replace(reply, error=f"{type(error).__name__}: {error}")
        if not self._keep:
            self._connection.close()
        return replace(reply, seconds=round(time.monotonic() - start, 3))

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _ask(self, reply: Reply) -> Reply:
        body = json.dumps({"input": TEXT, "seed": SEED, "stream": reply.stream, "response_format": "wav"})
        headers = {"Content-Type": "application/json"} | ({} if self._keep else {"Connection": "close"})
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        self._connection.request("POST", SPEECH, body, headers)
        response = self._connection.getresponse()
        if response.length is None and not response.chunked:
            raise BadReplyError(f"{response.status}: neither a Content-Length nor chunks, so no end can be told")
        wav = response.read()  # raises IncompleteRead where the end does not come
        if response.status != http.client.OK:
            raise BadReplyError(f"{response.status}: {wav[:500].decode(errors='replace')}")
        tokens = response.headers[HEADER_SPEECH_TOKENS]
        return replace(
            reply,
            version=response.headers[HEADER_VERSION],
            tokens=None if tokens is None else int(tokens),
            tokens_sha256=response.headers[HEADER_SPEECH_TOKENS_SHA256],
            samples=samples_in(wav, stream=reply.stream),
            audio_sha256=hashlib.sha256(wav).hexdigest(),
        )


def samples_in(wav: bytes, *, stream: bool) -> int:
    """The number of 16-bit samples. Raises BadReplyError where there are none or not as many as the header says."""
    if wav[:4] != b"RIFF" or len(wav) <= HEADER_BYTES or len(wav) % 2:
        raise BadReplyError(f"no wav file of 16-bit samples: {len(wav)} bytes, at first {wav[:16]!r}")
    (declared,) = struct.unpack_from("<I", wav, HEADER_BYTES - 4)
    if not stream and declared != len(wav) - HEADER_BYTES:
        raise BadReplyError(f"the wav header tells of {declared} bytes, {len(wav) - HEADER_BYTES} came")
    return (len(wav) - HEADER_BYTES) // 2


def main() -> None:
    """Call until SIGTERM, every second reply a stream."""
    parser = argparse.ArgumentParser(prog="python -m dev.traffic", description=__doc__)
    parser.add_argument("url", help="the Service, as http://HOST[:PORT]")
    parser.add_argument("--connection", choices=("kept", "new"), required=True)
    options = parser.parse_args()
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    api_key = os.environ.get(API_KEY_VARIABLE)
    netloc = urllib.parse.urlsplit(options.url).netloc
    with contextlib.closing(Client(netloc, keep=options.connection == "kept", api_key=api_key)) as client:
        for stream in itertools.cycle((False, True)):
            sys.stdout.write(json.dumps(asdict(client.speak(stream=stream))) + "\n")
            sys.stdout.flush()
            if ended:
                return


if __name__ == "__main__":
    main()
