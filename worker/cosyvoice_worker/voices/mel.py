"""The prompt's log-mel spectrogram: what the flow decoder continues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosyvoice_worker.voices.limits import MEL_BINS
from cosyvoice_worker.voices.spectrum import slaney_filters, stft

SAMPLE_RATE = 24000
WINDOW = 1920
HOP = 480  # 50 frames a second
FMAX = 8000.0
FLOOR = 1e-5


def prompt_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 (n) at 24 kHz -> float32 (n // 480, 80), natural logarithm of mel magnitudes."""
    spectrum = stft(samples, WINDOW, HOP, padding=(WINDOW - HOP) // 2)
    magnitude = np.sqrt(spectrum.real**2 + spectrum.imag**2 + 1e-9)
    mel = magnitude @ slaney_filters(SAMPLE_RATE, WINDOW, MEL_BINS, FMAX).T
    return np.log(np.maximum(mel, FLOOR)).astype(np.float32)
