"""`make load-test URL=http://…`: users x text length → latency, real-time factor, errors. One table, as Markdown.

Each user asks again as soon as the reply has come, streaming, on a connection of its own. A reply that is refused
because the queue is full (429) is counted as refused, not as an error: telling so at once is what the queue is for.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import threading
import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass

SPEECH = "/v1/audio/speech"
BYTES_PER_SAMPLE = 2
SAMPLE_RATE = 24_000
TIMEOUT_SECONDS = 330.0
SENTENCE = "Versions come and go, and nobody who listens hears a word cut off. "


@dataclass(frozen=True)
class Reply:
    """One request: seconds to the first byte of audio and to the last, seconds of audio, the HTTP code (0: none)."""

    first: float
    whole: float
    audio: float
    code: int


@dataclass(frozen=True)
class Row:
    """What `users` users with texts of `characters` characters met; times in seconds."""

    users: int
    characters: int
    replies: tuple[Reply, ...]
    seconds: float

    @property
    def whole(self) -> list[Reply]:
        return [reply for reply in self.replies if reply.code == http.client.OK]

    def line(self) -> str:
        """The row of the table. The real-time factor is of the service: seconds of work for a second of audio."""
        good = self.whole
        refused = sum(reply.code == http.client.TOO_MANY_REQUESTS for reply in self.replies)
        errors = len(self.replies) - len(good) - refused
        audio = sum(reply.audio for reply in good)
        cells = [
            f"{self.users} x {self.characters}",
            str(len(self.replies)),
            quantiles([reply.first for reply in good]),
            quantiles([reply.whole for reply in good]),
            f"{self.seconds / audio:.2f}" if audio else "-",
            str(refused),
            str(errors),
        ]
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| users x characters | requests | first audio, s (p50 / p95) | whole reply, s (p50 / p95) | real-time factor | "
    "refused | errors |\n|---|---:|---:|---:|---:|---:|---:|"
)


def quantiles(values: Sequence[float]) -> str:
    """Median and 95th percentile."""
    if not values:
        return "-"
    high = statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
    return f"{statistics.median(values):.2f} / {high:.2f}"


def text_of(characters: int) -> str:
    """A text of exactly so many characters."""
    return (SENTENCE * (characters // len(SENTENCE) + 1))[: characters - 1] + "."


def ask(netloc: str, text: str, seed: int) -> Reply:
    """One request, on a connection of its own."""
    connection = http.client.HTTPConnection(netloc, timeout=TIMEOUT_SECONDS)
    start = time.monotonic()
    code, first, received = 0, 0.0, 0
    try:
        body = json.dumps({"input": text, "seed": seed, "stream": True, "response_format": "pcm"})
        connection.request("POST", SPEECH, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        while part := response.read1(65536):
            first = first or time.monotonic() - start
            received += len(part)
        code = response.status
    except (OSError, http.client.HTTPException) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        code = 0
    finally:
        connection.close()
    return Reply(first, time.monotonic() - start, received / BYTES_PER_SAMPLE / SAMPLE_RATE, code)


def load(netloc: str, users: int, characters: int, seconds: float) -> Row:
    """So many users for so many seconds; the replies that are under way then are waited for."""
    replies: list[Reply] = []
    start = time.monotonic()

    def use(user: int) -> None:
        seed = user
        while time.monotonic() - start < seconds:
            reply = ask(netloc, text_of(characters), seed)
            replies.append(reply)
            seed += users
            if reply.code != http.client.OK:
                time.sleep(1)  # as Retry-After says at least

    threads = [threading.Thread(target=use, args=(user,)) for user in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Row(users, characters, tuple(replies), time.monotonic() - start)


def main() -> None:
    """Print the table; end with 1 where a request failed."""
    parser = argparse.ArgumentParser(prog="python -m dev.load", description=__doc__)
    parser.add_argument("url", help="the model's Service, as http://HOST[:PORT]")
    parser.add_argument("--users", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--characters", type=int, nargs="+", default=[20, 100, 400])
    parser.add_argument("--seconds", type=float, default=30, help="for each row")
    options = parser.parse_args()
    netloc = urllib.parse.urlsplit(options.url).netloc
    if not netloc:
        parser.error(f"{options.url!r} is no address: expected http://HOST[:PORT]")
    print(HEAD)
    failed = False
    for users in options.users:
        for characters in options.characters:
            row = load(netloc, users, characters, options.seconds)
            failed |= len(row.whole) == 0 or any(reply.code not in {200, 429} for reply in row.replies)
            print(row.line(), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
