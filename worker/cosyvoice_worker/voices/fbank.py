"""Kaldi's filter banks (https://kaldi-asr.org, feature-fbank), the speaker encoder's input."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 16000
WINDOW = 400
HOP = 160
FFT_SIZE = 512
BINS = 80
FMIN = 20.0
PRE_EMPHASIS = 0.97
FLOOR = 1.1920928955078125e-07  # float32's epsilon


def speaker_features(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 (n) in [-1, 1] at 16 kHz -> float32 (1 + (n - 400) // 160, 80), minus each bin's mean over time."""
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), WINDOW)[::HOP]  # (T, 400)
    frames = frames - frames.mean(axis=1, keepdims=True)
    previous = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    spectrum = np.fft.rfft((frames - PRE_EMPHASIS * previous) * _povey_window(), FFT_SIZE)  # (T, 257)
    mel = (spectrum.real**2 + spectrum.imag**2) @ _filters().T
    log = np.log(np.maximum(mel, FLOOR))
    features: NDArray[np.float32] = (log - log.mean(axis=0)).astype(np.float32)
    return features


def _povey_window() -> NDArray[np.float64]:
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / (WINDOW - 1))
    window: NDArray[np.float64] = hann**0.85
    return window


def _filters() -> NDArray[np.float64]:
    """(80, 257): triangles equidistant in Kaldi's mel from 20 Hz to 8 kHz; the last bin, at 8 kHz, is in none."""
    mels = 1127.0 * np.log(1.0 + np.arange(FFT_SIZE // 2 + 1) * (SAMPLE_RATE / FFT_SIZE) / 700.0)
    lowest = 1127.0 * math.log(1.0 + FMIN / 700.0)
    edges = np.linspace(lowest, mels[-1], BINS + 2)
    low, centre, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    filters: NDArray[np.float64] = np.maximum(
        0.0, np.minimum((mels - low) / (centre - low), (high - mels) / (high - centre))
    )
    filters[:, -1] = 0.0
    return filters
