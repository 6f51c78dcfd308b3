"""Everything that reads bytes from strangers: what it is fed at first, and how it may refuse."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import safetensors.torch
import soundfile
import torch

from cosyvoice_operator import live, termination, workerstatus
from cosyvoice_worker import channel, settings
from cosyvoice_worker.models.cosyvoice2 import config
from cosyvoice_worker.outcome import Phase, WorkerError
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_request import parse_speech
from cosyvoice_worker.staging import orders
from cosyvoice_worker.staging.inspection import inspect
from cosyvoice_worker.staging.manifest import Manifest
from cosyvoice_worker.staging.selection import SourceFile
from cosyvoice_worker.text.tokenizer import Tokenizer
from cosyvoice_worker.voices import audio, files, pack
from cosyvoice_worker.voices.errors import VoiceError
from cosyvoice_worker.voices.limits import COSYVOICE2
from cosyvoice_worker.voices.pack import Pack
from cosyvoice_worker.weights import checkpoint, pickles


@dataclass(frozen=True)
class Reader:
    """`read` takes bytes and returns, or raises one of `refusals`; anything else is a fault."""

    seeds: tuple[bytes, ...]
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]


def readers(model: Path, folder: Path) -> dict[str, Reader]:
    """All readers by name. `model` is a good model directory, `folder` an empty one for what is written on the way."""
    zipped, before_zip, tensors = _checkpoint(zipped=True), _checkpoint(zipped=False), _safetensors()
    voice = pack.encode(_voice(), "seed")
    text_model = model / "CosyVoice-BlankEN"
    a_config = json.dumps(_MODEL_JSON).encode()
    return {
        "checkpoint": Reader((zipped, before_zip), _file(folder, "a.pt", checkpoint.read), (WorkerError,)),
        "pickle": Reader((_pickle(zipped),), pickles.problem_of, ()),
        "safetensors": Reader((tensors,), _file(folder, "a.safetensors", checkpoint.read), (WorkerError,)),
        "inspected-checkpoint": Reader((zipped, before_zip), _inspected(folder, "i.pt"), (WorkerError,)),
        "inspected-pack": Reader((voice, tensors), _inspected(folder, "i.safetensors"), (WorkerError,)),
        "manifest": Reader((_MANIFEST,), lambda content: Manifest.parse(content.decode("latin-1")), (ValueError,)),
        "yaml": _in_model(model, folder, "cosyvoice2.yaml", config.read),
        "backbone": _in_model(model, folder, "CosyVoice-BlankEN/config.json", config.read),
        "vocabulary": _in_model(text_model, folder, "vocab.json", _tokenize),
        "merges": _in_model(text_model, folder, "merges.txt", _tokenize),
        "added-tokens": _in_model(text_model, folder, "tokenizer_config.json", _tokenize),
        "voice-pack": Reader((voice,), _file(folder, "v.safetensors", files.read), (VoiceError,)),
        "recording": Reader((_recording(),), _file(folder, "r.wav", audio.read_recording), (VoiceError,)),
        "request": Reader((_REQUEST,), lambda content: parse_speech(content, Limits()), (Problem,)),
        "model-json": Reader(
            (a_config,), lambda content: settings.parse_settings(content, Phase.STAGE), (WorkerError,)
        ),
        "order": Reader((b"3f9a1c0b7d.1.x",), lambda content: orders.parse(content.decode("latin-1")), ()),
        "engine-message": Reader(
            (channel.encode(channel.Ready(24000, "cpu", "float32", {"map": 0.1}, ["ann"]))[4:],),
            channel.decode_engine,
            (msgspec.MsgspecError,),
        ),
        "termination-message": Reader(
            (_TERMINATION,), lambda content: termination.parse(content.decode("latin-1")), ()
        ),
        "worker-status": Reader((_STATUS,), workerstatus.parse, ()),
        "live-document": Reader(
            (a_config,), lambda content: live.parse("3f9a1c0b7d", {"current.json": content.decode("latin-1")}), ()
        ),
    }


def _file(folder: Path, name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def through_a_file(content: bytes) -> object:
        path = folder / name
        path.write_bytes(content)
        return read(path)

    return through_a_file


def _inspected(folder: Path, name: str) -> Callable[[bytes], object]:
    return _file(folder, name, lambda path: inspect(SourceFile(path.name, path, path.stat().st_size, 0)))


def _in_model(model: Path, folder: Path, name: str, read: Callable[[Path], object]) -> Reader:
    """A reader of one file of a directory whose other files are good."""
    copy = folder / name.replace("/", "-")
    shutil.copytree(model, copy, ignore=shutil.ignore_patterns("*.pt", "*.onnx"))

    def with_the_file_replaced(content: bytes) -> object:
        (copy / name).write_bytes(content)
        return read(copy)

    return Reader(((model / name).read_bytes(),), with_the_file_replaced, (WorkerError,))


def _tokenize(folder: Path) -> object:
    return Tokenizer.from_directory(folder).encode("Hello there [breath], it's 3.")


def _checkpoint(*, zipped: bool) -> bytes:
    stream = io.BytesIO()
    tensors = {"a.weight": torch.ones(3, 4), "b": torch.zeros(5)}
    torch.save(tensors, stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()


def _pickle(checkpoint: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(checkpoint)) as archive:
        return next(archive.read(name) for name in archive.namelist() if name.endswith("/data.pkl"))


def _safetensors() -> bytes:
    return safetensors.torch.save({"a": torch.ones(3, 4), "b": torch.zeros(2)})


def _voice() -> Pack:
    return Pack(
        family=COSYVOICE2,
        prompt_text="Hello.",
        speech_tokenizer_sha256="0" * 64,
        campplus_sha256="1" * 64,
        prompt_token=bytes(4),
        prompt_mel=bytes(2 * 80 * 4),
        embedding=bytes(192 * 4),
    )


def _recording() -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, np.sin(np.arange(16000) / 10).astype(np.float32), 16000, format="WAV")
    return stream.getvalue()


_MANIFEST = b"schema: 1\n" + b"0" * 64 + b"  12  a/b.pt\n"
_REQUEST = b'{"input": "Hello", "voice": "ann", "speed": 1.5, "seed": 3, "stream": false}'
_TERMINATION = (
    b'a log line\n{"schema":1,"reason":"MissingTensor","phase":"Build","retryable":false,"file":"flow.pt",'
    b'"tensor":"a.b","expected":"it","actual":"absent","elapsedSeconds":1.9,"message":"flow.pt lacks a.b"}'
)
_STATUS = json.dumps(
    {
        "schema": 1,
        "phase": "Ready",
        "revision": "3f9a1c0b7d",
        "digest": "sha256:" + "0" * 64,
        "load": {"import": 2.8, "map": 0.1, "build": 0.4, "warmUp": 2.6},
        "swap": {
            "order": "3f9a1c0b7d.1",
            "revision": "3f9a1c0b7d",
            "state": "Failed",
            "room": False,
            "failure": {"schema": 1, "reason": "MissingTensor", "phase": "Build", "message": "flow.pt lacks a.b"},
        },
    }
).encode()
_MODEL_JSON = {
    "schema": 1,
    "namespace": "speech",
    "model": "narrator",
    "version": "v1",
    "revision": "3f9a1c0b7d",
    "source": {"uri": "pvc://voices/narrator", "path": "/source/narrator", "digest": None},
    "staging": {"sizeLimitBytes": 1024, "verify": "Once"},
    "engine": {
        "device": "cpu",
        "dtype": "auto",
        "loadTimeoutSeconds": 600,
        "preload": True,
        "fallbackToCPU": False,
        "warmUp": {"texts": ["Hello."], "voice": None, "maxSeconds": 1.0},
    },
}
