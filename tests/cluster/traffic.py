"""Two clients that call a model's Service without pause, and what they have heard."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dev.playground import Playground
from dev.traffic import TIMEOUT_SECONDS, Reply
from dev.waiting import wait_for

# One keeps its connection as long as it may, the other comes with a new one each time.
CONNECTIONS = ("kept", "new")

Sounds = dict[bool, tuple[object, ...]]


@contextlib.contextmanager
def calling(playground: Playground, name: str, folder: Path) -> Iterator[Traffic]:
    """The two clients at work, from outside of the nodes, through kube-proxy's rules for the Service's address."""
    address = playground.get("service", name)["spec"]["clusterIP"]
    traffic = Traffic({connection: folder / f"{connection}.jsonl" for connection in CONNECTIONS})
    with contextlib.ExitStack() as stack:
        for connection, path in traffic.files.items():
            command = [sys.executable, "-m", "dev.traffic", f"http://{address}", "--connection", connection]
            client = subprocess.Popen(command, stdout=stack.enter_context(path.open("wb")))
            stack.callback(_end, client)
        try:
            yield traffic
        except Exception as error:
            error.add_note(f"requests that failed meanwhile: {[reply for reply in traffic.replies() if reply.error]}")
            raise


def _end(client: subprocess.Popen[bytes]) -> None:
    client.terminate()
    if code := client.wait(2 * TIMEOUT_SECONDS):
        raise RuntimeError(f"a load client ended with {code}")


@dataclass(frozen=True)
class Traffic:
    """What the clients have heard, in a file for each."""

    files: dict[str, Path]

    def replies(self) -> list[Reply]:
        """What both have heard so far, in the order of asking."""
        return sorted(self._heard(), key=lambda reply: reply.began)

    def wait_for_version(self, version: str) -> None:
        """Wait until each client has heard `version`."""

        def heard() -> bool:
            return all(
                any(reply.version == version for reply in self._heard_by(connection)) for connection in CONNECTIONS
            )

        wait_for(f"replies of {version}", heard, timeout=2 * TIMEOUT_SECONDS, every=0.5)

    def _heard(self) -> Iterator[Reply]:
        for connection in CONNECTIONS:
            yield from self._heard_by(connection)

    def _heard_by(self, connection: str) -> Iterator[Reply]:
        for line in self.files[connection].read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield Reply(**json.loads(line))


def check_whole(replies: list[Reply], known: dict[str, Sounds]) -> None:
    """None failed, none was cut, and each is one of the `known` versions from its first sample to its last.

    `known` has the sound of each version, whole and streamed. What it has none for yet is learned here, and has to be
    the same for all replies of that version, and another than every other version's.
    """
    assert [reply for reply in replies if reply.error] == []
    heard: dict[tuple[str | None, bool], set[tuple[object, ...]]] = defaultdict(set)
    for reply in replies:
        heard[reply.version, reply.stream].add(reply.sound)
    assert {version for version, _ in heard} <= known.keys()
    for (version, stream), sounds in heard.items():
        assert version is not None
        expected = known[version].setdefault(stream, next(iter(sounds)))
        assert sounds == {expected}, f"{version}, stream {stream}: {sounds} besides {expected}"
    for stream in (False, True):
        told = [sounds[stream] for sounds in known.values() if stream in sounds]
        assert len(told) == len(set(told)), "two versions sound the same: it cannot be heard which one spoke"
