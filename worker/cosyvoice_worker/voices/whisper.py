"""Whisper's log-mel features (https://github.com/openai/whisper), the speech tokenizer's input."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosyvoice_worker.voices.spectrum import slaney_filters, stft

SAMPLE_RATE = 16000
WINDOW = 400
HOP = 160  # 100 frames a second
BINS = 128
FLOOR = 1e-10
DYNAMIC_RANGE = 8.0  # powers of ten below the loudest value


def whisper_features(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 (n) at 16 kHz -> float32 (128, n // 160)."""
    spectrum = stft(samples, WINDOW, HOP, padding=WINDOW // 2)[:-1]
    power = spectrum.real**2 + spectrum.imag**2
    mel = slaney_filters(SAMPLE_RATE, WINDOW, BINS, SAMPLE_RATE / 2) @ power.T
    log = np.log10(np.maximum(mel, FLOOR))
    log = np.maximum(log, log.max() - DYNAMIC_RANGE)
    features: NDArray[np.float32] = ((log + 4.0) / 4.0).astype(np.float32)
    return features
