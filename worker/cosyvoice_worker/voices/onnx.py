"""The two ONNX files of a model directory: the speech tokenizer and the speaker encoder (campplus).

They are run once a voice, on one CPU thread, by onnxruntime: an optional dependency, as a worker never needs it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.regular_files import open_regular
from cosyvoice_worker.voices.errors import refuse
from cosyvoice_worker.voices.files import unusable
from cosyvoice_worker.voices.limits import EMBEDDING_SIZE, SPEECH_TOKEN_IDS

EXTRA = "cosyvoice-operator[voices]"
_ERRORS_ONLY = 3
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class OnnxModel:
    """One opened ONNX file. Raises VoiceError when onnxruntime is not installed or cannot read the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = _digest(path)
        try:
            import onnxruntime  # noqa: PLC0415 - optional, and slow to import
        except ImportError as error:
            what = f"onnxruntime is not installed: pip install '{EXTRA}'"
            raise refuse(what, reason=Reason.INVALID_CONFIG) from error
        onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            # onnxruntime's exceptions have no base class of their own.
            raise refuse(f"not a model that onnxruntime can load ({error})", file=str(path)) from error

    def run(self, *inputs: NDArray[Any]) -> NDArray[Any]:
        """The first output for inputs in the file's own order. Raises VoiceError when they do not fit the file."""
        names = [described.name for described in self._session.get_inputs()]
        if len(names) != len(inputs):
            raise refuse("inputs", file=str(self.path), expected=len(inputs), actual=", ".join(names))
        try:
            outputs = self._session.run(None, dict(zip(names, inputs, strict=True)))
        except Exception as error:
            raise refuse(f"failed to run ({error})", file=str(self.path)) from error
        return np.asarray(outputs[0])


def speech_tokens(tokenizer: OnnxModel, features: NDArray[np.float32]) -> NDArray[np.int32]:
    """Whisper features float32 (128, T) -> speech tokens int32 (about T / 4)."""
    tokens = tokenizer.run(features[None], np.array([features.shape[1]], np.int32)).reshape(-1)
    if not np.issubdtype(tokens.dtype, np.integer):
        raise refuse("output", file=str(tokenizer.path), expected="whole numbers", actual=tokens.dtype)
    if len(tokens) and not (tokens.min() >= 0 and tokens.max() < SPEECH_TOKEN_IDS):
        actual = f"{tokens.min()} to {tokens.max()}"
        raise refuse("tokens", file=str(tokenizer.path), expected=f"ids below {SPEECH_TOKEN_IDS}", actual=actual)
    return tokens.astype(np.int32)


def speaker_embedding(campplus: OnnxModel, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Filter banks float32 (T, 80) -> speaker embedding float32 (192)."""
    embedding = campplus.run(features[None]).reshape(-1)
    if embedding.shape != (EMBEDDING_SIZE,) or not np.isfinite(embedding).all():
        expected = f"{EMBEDDING_SIZE} finite numbers"
        raise refuse("output", file=str(campplus.path), expected=expected, actual=embedding.shape)
    return embedding.astype(np.float32)


def _digest(path: Path) -> str:
    """sha256 of the file, which a git-lfs pointer in its place is not let through to."""
    try:
        with open_regular(path) as stream:
            if stream.read(len(_LFS_POINTER)) == _LFS_POINTER:
                what = "a git-lfs pointer, not the file: run `git lfs pull` in the clone"
                raise refuse(what, file=str(path), reason=Reason.LFS_POINTER)
            stream.seek(0)
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unusable(path, "cannot be read", error) from error
