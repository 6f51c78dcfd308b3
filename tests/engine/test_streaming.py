"""A stream's chunks: when they come, how long they are, and how one fades into the next."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cosyvoice_worker.engine.synthesis import flow_prompt
from cosyvoice_worker.models.cosyvoice2.source import GeneratorNoise
from cosyvoice_worker.models.cosyvoice2.token2wav import OVERLAP_FRAMES, ChunkVocoder, Token2Wav, chunk_ends
from cosyvoice_worker.voices.voice import built_in
from tests.engine.recorded import normal, token_ids

HOP = 480  # samples a mel frame
TOKEN = 2 * HOP
HELD_BACK = OVERLAP_FRAMES * HOP
LOOKAHEAD = 3


def ignore():
    """A step that nobody counts."""


def noise(seed=0):
    return GeneratorNoise(torch.Generator().manual_seed(seed))


def silence(samples, harmonics):
    return torch.zeros(1, samples, harmonics)


def speech(count):
    return token_ids("streaming/tokens", count)[0].tolist()


@pytest.fixture
def token2wav(model):
    return Token2Wav(model, flow_prompt(built_in(), model.device), noise(), ignore)


@pytest.mark.parametrize(
    ("prompt_tokens", "expected"),
    [
        (0, [25, 75, 175, 275, 375]),
        (1, [49, 99, 199, 299, 399]),
        (24, [26, 76, 176, 276, 376]),
        (25, [25, 75, 175, 275, 375]),
        (37, [38, 88, 188, 288, 388]),
        (750, [25, 75, 175, 275, 375]),
    ],
)
def test_the_first_chunk_is_short_and_the_next_ones_grow(prompt_tokens, expected):
    assert list(islice(chunk_ends(prompt_tokens), 5)) == expected


@given(st.integers(0, 750))
def test_every_chunk_ends_on_the_grid_that_starts_at_the_prompt(prompt_tokens):
    assert all((prompt_tokens + end) % 25 == 0 for end in islice(chunk_ends(prompt_tokens), 8))


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (0, []),
        (1, [1 * TOKEN]),
        (27, [27 * TOKEN]),
        (28, [25 * TOKEN - HELD_BACK, 3 * TOKEN + HELD_BACK]),
        (77, [25 * TOKEN - HELD_BACK, 52 * TOKEN + HELD_BACK]),
        (78, [25 * TOKEN - HELD_BACK, 50 * TOKEN, 3 * TOKEN + HELD_BACK]),
    ],
)
def test_a_chunk_comes_once_its_tokens_and_the_lookahead_are_there(token2wav, tokens, expected):
    chunks = list(token2wav.stream(speech(tokens)))

    assert [chunk.size for chunk in chunks] == expected


def test_the_first_chunk_does_not_wait_for_more_tokens_than_it_needs(token2wav):
    taken = []

    def tokens():
        for token in speech(80):
            taken.append(token)
            yield token

    next(token2wav.stream(tokens()))

    assert len(taken) == 25 + LOOKAHEAD


def test_a_stream_is_as_long_as_the_whole(token2wav):
    streamed = sum(chunk.size for chunk in token2wav.stream(speech(60)))

    assert streamed == token2wav.whole(speech(60)).size == 60 * TOKEN


def test_each_stream_starts_anew(token2wav):
    first = [chunk.size for chunk in token2wav.stream(speech(80))]
    second = [chunk.size for chunk in token2wav.stream(speech(80))]

    assert first == second


@pytest.mark.parametrize(("speed", "frames"), [(1.0, 60), (1.25, 48), (0.5, 120), (4.0, 15), (0.7, 85)])
def test_speed_stretches_the_mel(token2wav, speed, frames):
    assert token2wav.whole(speech(30), speed).size == frames * HOP


def test_a_solver_step_can_end_a_stream(model):
    def stop():
        raise InterruptedError

    token2wav = Token2Wav(model, flow_prompt(built_in(), model.device), noise(), stop)

    with pytest.raises(InterruptedError):
        next(token2wav.stream(speech(28)))


def test_a_chunk_is_faded_in_over_what_was_held_back_of_the_one_before(model):
    mel = normal("streaming/mel", (1, 80, 60))
    vocoder = ChunkVocoder(model.hift, silence, ignore)
    whole, source = model.hift(mel[:, :, :40], silence)
    first_tail = whole[0, -HELD_BACK:].numpy()
    second, _ = model.hift(mel[:, :, 32:], silence, source[:, :, -HELD_BACK:])
    window = np.hamming(2 * HELD_BACK)

    emitted = [vocoder(mel[:, :, :40], final=False), vocoder(mel[:, :, 40:], final=True)]

    assert [chunk.size for chunk in emitted] == [32 * HOP, 28 * HOP]
    np.testing.assert_array_equal(emitted[0], whole[0, : 32 * HOP].numpy())
    faded = second[0, :HELD_BACK].numpy() * window[:HELD_BACK] + first_tail * window[HELD_BACK:]
    np.testing.assert_allclose(emitted[1][:HELD_BACK], faded, atol=1e-6)
    np.testing.assert_array_equal(emitted[1][HELD_BACK:], second[0, HELD_BACK:].numpy())


@settings(max_examples=20)
@given(st.lists(st.integers(OVERLAP_FRAMES, 30), min_size=1, max_size=4))
def test_however_the_frames_are_cut_no_sample_is_lost(model, cuts):
    vocoder = ChunkVocoder(model.hift, silence, ignore)
    mel = normal("streaming/mel", (1, 80, sum(cuts)))

    pieces = mel.split(cuts, dim=2)
    total = sum(vocoder(piece, final=index == len(cuts) - 1).size for index, piece in enumerate(pieces))

    assert total == sum(cuts) * HOP
