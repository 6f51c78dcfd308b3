"""Short-time spectra and the slaney mel filters that the prompt mel and the speech tokenizer's features share."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

# Slaney's scale: linear below 1 kHz (3 mel per 200 Hz), 27 mel per factor 6.4 above.
_LINEAR_MEL_PER_HZ = 3 / 200
_BREAK_HZ = 1000.0
_BREAK_MEL = 15.0
_LOG_STEP = np.log(6.4) / 27


def stft(samples: NDArray[np.float32], size: int, hop: int, padding: int) -> NDArray[np.complex128]:
    """float32 (n) -> (frames, size // 2 + 1): reflect padding on both sides, periodic Hann window of `size`."""
    padded = np.pad(samples.astype(np.float64), padding, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    return np.fft.rfft(frames * window)


@functools.cache
def slaney_filters(sample_rate: int, size: int, bins: int, fmax: float) -> NDArray[np.float64]:
    """(bins, size // 2 + 1): triangles equidistant in Slaney's mel from 0 to `fmax` Hz, each of unit area over Hz."""
    frequencies = np.linspace(0, sample_rate / 2, size // 2 + 1)
    edges = _to_hz(np.linspace(0.0, _to_mel(fmax), bins + 2))
    low, centre, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising = (frequencies - low) / (centre - low)
    falling = (high - frequencies) / (high - centre)
    filters: NDArray[np.float64] = np.maximum(0.0, np.minimum(rising, falling)) * 2.0 / (high - low)
    return filters


def _to_mel(hz: float) -> float:
    if hz < _BREAK_HZ:
        return hz * _LINEAR_MEL_PER_HZ
    return float(_BREAK_MEL + np.log(hz / _BREAK_HZ) / _LOG_STEP)


def _to_hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < _BREAK_MEL, mel / _LINEAR_MEL_PER_HZ, _BREAK_HZ * np.exp(_LOG_STEP * (mel - _BREAK_MEL)))
