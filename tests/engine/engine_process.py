"""A real engine process and the front's end of its channel, for tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from cosyvoice_worker import channel
from cosyvoice_worker.channel import EngineMessage, FrontMessage
from cosyvoice_worker.outcome import Phase
from cosyvoice_worker.settings import parse_settings
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.task import Task

REVISION = "3f9a1c0b7d"


def stage_model(model: Path, root: Path, revision: str = REVISION) -> None:
    """Stage `model` as the init container does."""
    document = json.dumps(model_json(model, revision)).encode()
    stage(Task(settings=parse_settings(document, Phase.STAGE), document=document, boundary=model), root)


def write_config(path: Path, **engine: object) -> Path:
    """A model.json whose `engine` section has the given fields over the usual ones."""
    path.write_text(json.dumps(model_json(Path("/source/model"), **engine)))
    return path


def model_json(model: Path, revision: str = REVISION, **engine: object) -> dict[str, Any]:
    """The document of a model that lies in `model`."""
    warm_up = {"texts": ["Hello, this is a warm-up."], "voice": None, "maxSeconds": 0.4}
    return {
        "schema": 1,
        "namespace": "speech",
        "model": "narrator",
        "version": "v1",
        "revision": revision,
        "source": {"uri": "pvc://voices/model", "path": str(model), "digest": None},
        "staging": {"sizeLimitBytes": 2**33, "verify": "Once"},
        "engine": {"device": "cpu", "dtype": "auto", "loadTimeoutSeconds": 600, "warmUp": warm_up, **engine},
    }


class EngineProcess:
    """Started at once, ended with the `with` block. `messages` are those received so far."""

    def __init__(self, root: Path, config: Path, voices: Path, **environment: str) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(300)
        with theirs:
            options = ["--fd", theirs.fileno(), "--config", config, "--root", root, "--voices", voices]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cosyvoice_worker.engine", *map(str, options)],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
                stderr=subprocess.DEVNULL,
            )
        self.messages: list[EngineMessage] = []

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()
        self.process.wait(60)

    def send(self, message: FrontMessage) -> None:
        self.sock.sendall(channel.encode(message))

    def receive(self) -> EngineMessage | None:
        """The next message; None when the engine has hung up."""
        head = self._read(channel.LENGTH.size)
        if not head:
            return None
        (length,) = channel.LENGTH.unpack(head)
        message = channel.decode_engine(self._read(length))
        self.messages.append(message)
        return message

    def _read(self, count: int) -> bytes:
        """`count` bytes; none at the end."""
        data = b""
        while len(data) < count and (piece := self.sock.recv(count - len(data))):
            data += piece
        return data

    def until(self, *kinds: type[EngineMessage]) -> EngineMessage:
        """The next message of one of `kinds`."""
        while (message := self.receive()) is not None:
            if isinstance(message, kinds):
                return message
        raise EOFError(f"the engine hung up, exit code {self.process.wait(60)}, after {self.messages[-3:]}")
