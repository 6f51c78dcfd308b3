"""Samples become 16-bit integers without wrapping around."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cosyvoice_worker.engine.pcm import to_s16


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (0.0, 0),
        (1.0, 32767),
        (-1.0, -32767),
        (1.07, 32767),
        (-1.07, -32767),
        (0.5 / 32767, 0),  # halves go to the even number
        (1.5 / 32767, 2),
        (-1.5 / 32767, -2),
    ],
)
def test_a_sample_is_scaled_clipped_and_rounded(sample, expected):
    encoded = to_s16(np.array([sample], dtype=np.float64).astype(np.float32))

    assert int.from_bytes(encoded, "little", signed=True) == expected


@given(arrays(np.float32, st.integers(0, 50), elements=st.floats(-2, 2, width=32)))
def test_every_sample_stays_within_half_a_step_of_the_clipped_one(samples):
    decoded = np.frombuffer(to_s16(samples), "<i2")

    assert decoded.shape == samples.shape
    assert np.all(np.abs(decoded / 32767 - np.clip(samples, -1, 1)) <= 0.5 / 32767 + 1e-6)
