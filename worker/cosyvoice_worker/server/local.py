"""`serve --model DIR`: a model directory as it is, without staging: the files that a pod would have, in a directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cosyvoice_worker.names import CONFIG_SCHEMA
from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.settings import Device, Dtype, Engine, Settings, Source, Staging, WarmUp
from cosyvoice_worker.staging.pointer import Staged, write_pointer

LOCAL = "local"
WARM_UP_TEXT = "Hello, this is a warm-up."


def prepare(model: Path, into: Path, device: Device, dtype: Dtype, load_timeout_seconds: int) -> Path:
    """Write model.json and its pointer for the directory `model` into `into`; the path of model.json.

    Raises WorkerError(MissingFile) when `model` is no directory.
    """
    model = model.resolve()
    if not model.is_dir():
        raise fail(Reason.MISSING_FILE, Phase.MAP, f"--model {model}: there is no such directory", file=str(model))
    files = [path for path in model.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    settings = Settings(
        schema=CONFIG_SCHEMA,
        namespace=LOCAL,
        model=model.name,
        version=LOCAL,
        revision=LOCAL,
        source=Source(uri=model.as_uri(), path=str(model)),
        staging=Staging(size_limit_bytes=max(1, size)),
        engine=Engine(
            device=device,
            dtype=dtype,
            warm_up=WarmUp(texts=[WARM_UP_TEXT]),
            load_timeout_seconds=load_timeout_seconds,
        ),
    )
    config = into / "model.json"
    document = msgspec.json.encode(settings)
    config.write_bytes(document)
    # An absolute path in the pointer is taken as it is.
    staged = Staged(revision=LOCAL, digest=LOCAL, directory=str(model), bytes=size, seconds=0.0, files=len(files))
    write_pointer(into, staged, document)
    return config
