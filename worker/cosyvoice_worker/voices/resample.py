"""Windowed-sinc resampling, as the models' prompts were made with: other resamplers give other speech tokens."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

ZERO_CROSSINGS = 6
ROLLOFF = 0.99


def resample(samples: NDArray[np.float32], rate: int, target: int) -> NDArray[np.float32]:
    """float32 (n) at `rate` Hz -> float32 (ceil(n * target / rate)) at `target` Hz.

    Low-pass sinc kernels of 6 zero crossings at 0.99 of the lower Nyquist frequency, under a squared-cosine window.
    Meant for rates with a large common divisor, as recordings have: the kernels' memory grows with what is left.
    """
    if rate == target:
        return samples
    divisor = math.gcd(rate, target)
    step, phases = rate // divisor, target // divisor
    kernels, width = _kernels(step, phases)  # (phases, taps)
    padded = np.pad(samples, (width, width + step))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernels.shape[1])[::step]  # (blocks, taps)
    interleaved = (windows @ kernels.T).reshape(-1)  # (blocks * phases)
    return interleaved[: math.ceil(phases * len(samples) / step)]


def _kernels(step: int, phases: int) -> tuple[NDArray[np.float32], int]:
    """One kernel for each output between two blocks of `step` inputs, and the inputs it reaches to the left."""
    bandwidth = min(step, phases) * ROLLOFF
    width = math.ceil(ZERO_CROSSINGS * step / bandwidth)
    taps = np.arange(-width, width + step) / step  # (taps)
    # The delays are float32 where the models' prompts come from; in float64 the result moves by 3e-6.
    delays = (np.arange(phases, dtype=np.float32) / np.float32(phases))[:, None]  # (phases, 1)
    t = np.clip((taps - delays) * bandwidth, -ZERO_CROSSINGS, ZERO_CROSSINGS)
    window = np.cos(np.pi * t / (2 * ZERO_CROSSINGS)) ** 2
    return (np.sinc(t) * window * (bandwidth / step)).astype(np.float32), width
