"""Model directories to measure with, in memory as a pod has them, and gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks._rounds import progress
from cosyvoice_worker.models.cosyvoice2.load import FILES
from cosyvoice_worker.voices import files, limits
from cosyvoice_worker.voices.pack import Pack
from dev.models import full, tiny

TMPFS = Path("/dev/shm")
VOICE = "narrator"
PROMPT_TOKENS = 75  # 3 s


@contextmanager
def full_size() -> Iterator[Path]:
    """A random CosyVoice2 of the published size in tmpfs: 2.4 GiB."""
    with _directory("full") as directory:
        progress("writing a full-size model (2.4 GiB)")
        yield full.write(directory / "CosyVoice2-0.5B")


@contextmanager
def small() -> Iterator[Path]:
    """The tiny model (57 MB) with one voice."""
    with _directory("tiny") as directory:
        model = tiny.write(directory / "tiny")
        (model / "voices").mkdir()
        files.write(_voice(), model / "voices" / f"{VOICE}{limits.SUFFIX}")
        yield model


def weight_bytes(model: Path) -> int:
    """Of the three checkpoints."""
    return sum((model / name).stat().st_size for name in FILES)


@contextmanager
def _directory(kind: str) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=f"cosyvoice-bench-{kind}-", dir=TMPFS))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _voice() -> Pack:
    """A prompt of noise: nobody's voice, but everything that a recorded one costs."""
    random = np.random.default_rng(0)
    mel = random.normal(-6, 2, (limits.MEL_FRAMES_PER_TOKEN * PROMPT_TOKENS, limits.MEL_BINS))
    return Pack(
        family=limits.COSYVOICE2,
        prompt_text="A prompt that nobody has ever spoken.",
        prompt_token=random.integers(0, limits.SPEECH_TOKEN_IDS, PROMPT_TOKENS).astype("<i4").tobytes(),
        prompt_mel=mel.astype("<f4").tobytes(),
        embedding=random.normal(0, 1, limits.EMBEDDING_SIZE).astype("<f4").tobytes(),
        speech_tokenizer_sha256="0" * 64,
        campplus_sha256="0" * 64,
    )
