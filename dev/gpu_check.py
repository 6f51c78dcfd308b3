"""The facts about CUDA that no CPU can show: loading, agreement with the CPU, half precision, speed."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from cosyvoice_worker.engine.synthesis import Synthesizer
from cosyvoice_worker.engine.utterance import SpeechRequest
from cosyvoice_worker.models.cosyvoice2.load import load, make_tokenizer
from cosyvoice_worker.voices.voice import built_in
from dev.models import full, tiny

TEXT = "Hello there, this is a short test, and it goes on."
LOAD_BREAKER_SECONDS = 120.0


@dataclass(frozen=True)
class Spoken:
    """What one request gave on one device."""

    samples: np.ndarray[tuple[int], np.dtype[np.float32]]
    sha256: str
    seconds: float
    first_chunk_seconds: float
    sample_rate: int

    @property
    def real_time_factor(self) -> float:
        return self.seconds / (len(self.samples) / self.sample_rate)


def main() -> int:
    """Run every check; 1 if one failed."""
    failed = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for name, held, figures in checks(Path(folder)):
            print(f"{'ok    ' if held else 'FAILED'} {name}: {figures}", flush=True)
            failed += not held
    return 1 if failed else 0


def checks(folder: Path) -> Iterator[tuple[str, bool, str]]:
    """(what was checked, whether it held, the figures)."""
    small = folder / "tiny"
    tiny.write(small)
    cpu, cuda = speak(small, "cpu", "float32"), speak(small, "cuda", "float32")
    yield "same tokens on CPU and CUDA", cpu.sha256 == cuda.sha256, f"{cpu.sha256[:12]} {cuda.sha256[:12]}"
    same_length = len(cpu.samples) == len(cuda.samples)
    near = float(np.mean(np.abs(cpu.samples - cuda.samples) <= 5e-2)) if same_length else 0.0
    yield "99 % of samples within 5e-2 of the CPU's", near >= 0.99, f"{near:.4f}"
    again = speak(small, "cuda", "float32")
    yield "a seed gives the same tokens again", again.sha256 == cuda.sha256, again.sha256[:12]

    large = folder / "full"
    full.write(large)
    for dtype in ("float32", "float16", "bfloat16"):
        before = torch.cuda.memory_allocated()
        start = time.perf_counter()
        load(large, "cuda", dtype, lambda _phase: None)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        gib = (torch.cuda.max_memory_allocated() - before) / 2**30
        yield f"full size loads as {dtype}", seconds < LOAD_BREAKER_SECONDS, f"{seconds:.2f} s, {gib:.2f} GiB at most"
        for stream in (False, True):
            spoken = speak(large, "cuda", dtype, stream=stream)
            finite = bool(np.isfinite(spoken.samples).all()) and len(spoken.samples) > 0
            how = "streaming" if stream else "whole"
            figures = f"real-time factor {spoken.real_time_factor:.3f}, first audio {spoken.first_chunk_seconds:.2f} s"
            yield f"full size speaks, {dtype}, {how}", finite, figures
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def speak(directory: Path, device: str, dtype: str, *, stream: bool = False) -> Spoken:
    """Load, speak once to warm up and once to measure."""
    model = load(directory, device, dtype, lambda _phase: None)
    synthesizer = Synthesizer(model, make_tokenizer(directory))
    request = SpeechRequest(text=TEXT, voice=built_in(), stream=stream, seed=7)
    list(synthesizer.synthesize(request, lambda: None))
    synthesis = synthesizer.synthesize(request, lambda: None)
    chunks = list(synthesis)
    result = synthesis.result
    return Spoken(
        samples=np.concatenate([np.asarray(chunk, dtype=np.float32) for chunk in chunks]),
        sha256=result.speech_tokens_sha256,
        seconds=result.seconds,
        first_chunk_seconds=result.first_chunk_seconds,
        sample_rate=model.config.sample_rate,
    )


if __name__ == "__main__":
    sys.exit(main())
