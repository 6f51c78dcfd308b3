"""A prompt recording without a speaker: a rising tone, two of its harmonics, a slow swell, some noise; 1.5 s at 24 kHz.

The same samples everywhere: the recorded features under tests/engine/goldens are those of this wave.
`python -m dev.models.prompt prompt.wav` writes it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosyvoice_worker.wav import wav_header
from dev.models import streams

SAMPLE_RATE = 24000
SAMPLES = 36000
NOISE = "golden/wave"


def wave() -> NDArray[np.int16]:
    """The samples, int16 (36000)."""
    t = np.arange(SAMPLES) / SAMPLE_RATE
    cycles = 140 * t + 30 * t**2
    tone = sum(level * np.sin(2 * np.pi * n * cycles) for n, level in ((1, 0.30), (5, 0.15), (17, 0.10)))
    sound = (0.6 + 0.4 * np.sin(4 * np.pi * t)) * tone + 0.01 * streams.normal(NOISE, (SAMPLES,))
    return np.clip(np.round(32767 * sound), -32768, 32767).astype(np.int16)


def write(path: Path) -> Path:
    """Write the recording as a WAV file and return its path."""
    path.write_bytes(wav_header(SAMPLE_RATE, SAMPLES) + wave().astype("<i2").tobytes())
    return path


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(prog="python -m dev.models.prompt", description=__doc__)
    parser.add_argument("file", type=Path)
    print(write(parser.parse_args().file))


if __name__ == "__main__":
    main()
