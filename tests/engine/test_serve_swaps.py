"""The whole worker when another version is ordered: with the tiny model in two takes, and the real stager."""

from __future__ import annotations

import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest

from cosyvoice_worker.faults.archive import rewrite
from cosyvoice_worker.faults.kit import FAULTS, make_bad
from cosyvoice_worker.voices import files
from cosyvoice_worker.voices.pack import Pack
from dev.models import tiny
from tests.engine.swapping_pod import SwappingPod

TEXT = "The quick brown fox."
FIRST, SECOND = "aaaaaaaaaa", "bbbbbbbbbb"
OBJECTS = 8_000_000  # half a GiB: more than the engine's budget, less than what the kernel would refuse by itself


@pytest.fixture(scope="module")
def other_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model in another take, with a voice of its own."""
    model = tiny.write(tmp_path_factory.mktemp("other") / "model", take="second")
    pack = Pack(
        family="cosyvoice2",
        prompt_text="",
        prompt_token=b"",
        prompt_mel=b"",
        embedding=np.ones(192, "<f4").tobytes(),
        speech_tokenizer_sha256="a" * 64,
        campplus_sha256="b" * 64,
    )
    (model / "voices").mkdir()
    files.write(pack, model / "voices" / "bert.safetensors")
    return model


@pytest.fixture(scope="module")
def pod(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwappingPod]:
    """Serves the first version; a test leaves it so."""
    with SwappingPod(tmp_path_factory.mktemp("pod"), tiny_model_dir, FIRST) as running:
        yield running


class Client(threading.Thread):
    """Speaks again and again until told to stop; whatever comes is kept as version, whole or not, and audio."""

    def __init__(self, pod: SwappingPod, *, stream: bool) -> None:
        super().__init__()
        self.replies: list[tuple[str, bytes]] = []
        self.problems: list[str] = []
        self._url = str(pod.worker.api.base_url.join("/v1/audio/speech"))
        self._body = {"input": TEXT, "seed": 1, "stream": stream, "response_format": "pcm"}
        self._told_to_stop = threading.Event()

    def run(self) -> None:
        while not self._told_to_stop.is_set():
            try:
                reply = httpx.post(self._url, json=self._body, timeout=300)
            except httpx.TransportError as error:
                self.problems.append(f"{type(error).__name__}: {error}")
                continue
            if reply.status_code != 200:
                self.problems.append(reply.text)
            self.replies.append((reply.headers["x-cosyvoice-version"], reply.content))

    def finish(self) -> None:
        self._told_to_stop.set()
        self.join()

    def versions(self) -> set[str]:
        return {version for version, _ in self.replies}


def audio(pod: SwappingPod, *, stream: bool) -> bytes:
    return pod.worker.speak(TEXT, seed=1, stream=stream, response_format="pcm").content


def test_every_reply_during_a_switch_comes_whole_from_one_version(
    pod: SwappingPod, tiny_model_dir: Path, other_model_dir: Path
) -> None:
    before = {stream: audio(pod, stream=stream) for stream in (False, True)}
    clients = {stream: Client(pod, stream=stream) for stream in (False, True)}
    for client in clients.values():
        client.start()
    descriptors = pod.descriptors()
    pod.offer(other_model_dir, f"{SECOND}.1")
    swap = pod.swap(f"{SECOND}.1", "Switched", "Failed")
    pod.worker.until(lambda: all(f"v-{SECOND}" in client.versions() for client in clients.values()))
    for client in clients.values():
        client.finish()
    pod.until_one_engine()
    after = {stream: audio(pod, stream=stream) for stream in (False, True)}
    status = pod.worker.status()
    voices = pod.worker.api.get("/v1/audio/voices").json()["voices"]

    assert (swap["state"], swap["failure"]) == ("Switched", None)
    assert set(swap["load"]) == {"import", "map", "build", "warmUp", "total"}
    assert (status["revision"], status["version"], status["engine"]["restarts"]) == (SECOND, f"v-{SECOND}", 0)
    assert [voice["id"] for voice in voices] == ["bert"]
    for stream, client in clients.items():
        spoken = {f"v-{FIRST}": before[stream], f"v-{SECOND}": after[stream]}
        assert client.problems == []
        assert before[stream] != after[stream]
        assert client.versions() == set(spoken)
        assert all(content == spoken[version] for version, content in client.replies)

    pod.offer(tiny_model_dir, f"{FIRST}.2")
    pod.swap(f"{FIRST}.2", "Switched")
    pod.until_one_engine()
    again = pod.worker.speak(TEXT, seed=1, response_format="pcm")
    assert (again.headers["x-cosyvoice-version"], again.content) == (f"v-{FIRST}", before[False])
    assert pod.worker.api.get("/v1/audio/voices").json()["voices"] == []
    pod.worker.until(lambda: pod.descriptors() <= descriptors)


def bounded(good: Path, bad: Path) -> None:
    """A load that asks for more memory than a second engine may take, though the kernel would give it."""
    shutil.copytree(good, bad)
    (bad / "hift.pt").unlink()
    rewrite(good / "hift.pt", bad / "hift.pt", pickle.EMPTY_DICT * OBJECTS)


def fault(name: str) -> Callable[[Path, Path], object]:
    return lambda good, bad: make_bad(FAULTS[name], good, bad)


class Bad(NamedTuple):
    """How a directory is made bad, and what is told of it."""

    damage: Callable[[Path, Path], object]
    reason: str
    phase: str
    load_seconds: int = 600


BAD = {
    "c1.11": Bad(fault("missing-tensor"), "MissingTensor", "Build"),
    "c2.12": Bad(fault("crash-by-signal"), "EngineDied", "Map"),
    "c3.13": Bad(fault("hang-in-load"), "LoadTimeout", "Map", load_seconds=6),
    "c4.14": Bad(fault("nan-weight"), "NonFiniteAudio", "WarmUp"),
    "c5.15": Bad(bounded, "OutOfMemory", "Map"),
    "c6.16": Bad(fault("truncated-file"), "TruncatedFile", "Stage"),
}
ESSENTIAL = ("c1.11", "c5.15")


@pytest.mark.parametrize(
    "order", [order if order in ESSENTIAL else pytest.param(order, marks=pytest.mark.long) for order in BAD]
)
def test_a_version_that_fails_leaves_the_first_one_serving(
    pod: SwappingPod, tiny_model_dir: Path, tmp_path: Path, order: str
) -> None:
    bad = BAD[order]
    bad.damage(tiny_model_dir, tmp_path / "bad")
    before = pod.worker.status()["engine"]
    client = Client(pod, stream=True)
    client.start()
    pod.offer(tmp_path / "bad", order, loadTimeoutSeconds=bad.load_seconds)
    swap = pod.swap(order, "Switched", "Failed")
    client.finish()
    pod.until_one_engine()
    status = pod.worker.status()

    assert (swap["state"], swap["failure"]["reason"], swap["failure"]["phase"]) == ("Failed", bad.reason, bad.phase)
    assert not swap["room"]
    assert (status["revision"], status["ready"], status["failure"]) == (FIRST, True, None)
    assert (status["engine"]["pid"], status["engine"]["restarts"]) == (before["pid"], before["restarts"])
    assert client.problems == []
    assert client.versions() == {f"v-{FIRST}"}


def test_a_worker_that_restarts_over_an_order_serves_what_is_proven_and_does_not_begin_again(
    tiny_model_dir: Path, other_model_dir: Path, tmp_path: Path
) -> None:
    with SwappingPod(tmp_path, tiny_model_dir, FIRST) as pod:
        pod.offer(other_model_dir, f"{SECOND}.1")
        pod.swap(f"{SECOND}.1", "Loading")
        pod.restart()
        swap = pod.swap(f"{SECOND}.1", "Switched", "Failed")
        status = pod.worker.status()
        proven = pod.worker.speak(TEXT).headers["x-cosyvoice-version"]

        assert (swap["state"], swap["failure"]["reason"]) == ("Failed", "EngineDied")
        assert swap["failure"]["message"] == "the worker restarted during the swap"
        assert (status["revision"], proven) == (FIRST, f"v-{FIRST}")

        pod.write("current.json", other_model_dir, SECOND)
        pod.restart()
        assert pod.swap(f"{SECOND}.1", "Switched", "Failed")["state"] == "Switched"
        assert pod.worker.speak(TEXT).headers["x-cosyvoice-version"] == f"v-{SECOND}"


@pytest.mark.parametrize(
    "recycle", [{"maxRequests": 3}, pytest.param({"maxMemoryGrowthBytes": 1}, marks=pytest.mark.long)], ids=str
)
def test_a_fresh_engine_takes_over_while_requests_go_on(
    tiny_model_dir: Path, tmp_path: Path, recycle: dict[str, int]
) -> None:
    (reason,) = (name.removesuffix("Bytes") for name in recycle)
    counted = f'cosyvoice_engine_recycles_total{{reason="{reason}",result="switched"}} '
    with SwappingPod(tmp_path, tiny_model_dir, FIRST, recycle=recycle) as pod:
        first, descriptors = pod.worker.engine_pid(), pod.descriptors()
        expected = audio(pod, stream=True)
        client = Client(pod, stream=True)
        client.start()
        pod.worker.until(lambda: counted in pod.worker.admin.get("/metrics").text)
        client.finish()
        status = pod.worker.status()

        assert client.problems == []
        assert {content for _, content in client.replies} == {expected}
        assert status["engine"]["pid"] != first
        assert (status["engine"]["restarts"], status["swap"]) == (0, None)
        pod.settled()
        pod.worker.until(lambda: pod.descriptors() <= descriptors + 1)


@pytest.mark.long
def test_asked_to_stop_in_the_middle_of_a_swap_it_ends_both_engines(
    tiny_model_dir: Path, other_model_dir: Path, tmp_path: Path
) -> None:
    with SwappingPod(tmp_path, tiny_model_dir, FIRST) as pod:
        pod.offer(other_model_dir, f"{SECOND}.1")
        pod.swap(f"{SECOND}.1", "Loading")
        engines = pod.processes()
        pod.worker.process.terminate()

        assert pod.worker.end() == 0
        assert len(engines) == 2
        assert [pid for pid in engines if Path(f"/proc/{pid}").exists()] == []
