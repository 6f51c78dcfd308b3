"""Samples as the channel and audio files carry them: signed 16-bit little-endian."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FULL_SCALE = 32767


def to_s16(samples: npt.NDArray[np.float32]) -> bytes:
    """Samples at full scale ±1, clipped (streamed ones reach ±1.07 where two chunks are faded), as bytes."""
    return np.rint(np.clip(samples, -1.0, 1.0) * FULL_SCALE).astype("<i2").tobytes()
