"""A prompt's features equal the recorded ones, so the model's ONNX files and its flow see what they were trained on."""

from __future__ import annotations

import numpy as np
import pytest

from cosyvoice_worker.voices.fbank import speaker_features
from cosyvoice_worker.voices.mel import prompt_mel
from cosyvoice_worker.voices.onnx import OnnxModel, speaker_embedding, speech_tokens
from cosyvoice_worker.voices.resample import resample
from cosyvoice_worker.voices.whisper import whisper_features
from dev.models import prompt, streams
from dev.models.tiny import RECIPE

SIDE = RECIPE / "side"


@pytest.fixture
def wave_24k(golden):
    return golden["fe/wav24_i16"].astype(np.float32) / 32768


@pytest.fixture
def wave_16k(golden):
    return golden["fe/wav16"][0]


def test_the_synthetic_prompt_is_the_recorded_wave(golden):
    assert np.array_equal(prompt.wave(), golden["fe/wav24_i16"])


@pytest.mark.parametrize(("rate", "target"), [(44100, 24000), (22050, 16000), (16000, 24000), (48000, 16000)])
def test_resampled_noise_equals_the_recorded(rate, target, golden, close):
    noise = (streams.normal("golden/resample", (1, 3000)) * 0.1).astype(np.float32)

    resampled = resample(noise[0], rate, target)

    close(resampled, golden[f"fe/resample_{rate}_{target}"][0], atol=1e-6)


def test_resampled_prompt_equals_the_recorded(wave_24k, wave_16k, close):
    close(resample(wave_24k, 24000, 16000), wave_16k, atol=1e-6)


def test_resampling_to_the_same_rate_changes_nothing(wave_24k):
    assert np.array_equal(resample(wave_24k, 24000, 24000), wave_24k)


def test_prompt_mel_equals_the_recorded(wave_24k, golden, close):
    close(prompt_mel(wave_24k), golden["fe/prompt_mel"][0])


def test_whisper_features_equal_the_recorded(wave_16k, golden, close):
    close(whisper_features(wave_16k), golden["fe/whisper128"][0])


def test_speaker_features_equal_the_recorded(wave_16k, golden, close):
    close(speaker_features(wave_16k), golden["fe/fbank80"], atol=1e-3)


def test_the_speech_tokenizer_gives_the_recorded_tokens(wave_16k, golden):
    tokenizer = OnnxModel(SIDE / "speech_tokenizer_v2.onnx")

    assert np.array_equal(speech_tokens(tokenizer, whisper_features(wave_16k)), golden["fe/speech_token"][0])


def test_the_speaker_encoder_gives_the_recorded_embedding(wave_16k, golden, close):
    campplus = OnnxModel(SIDE / "campplus.onnx")

    close(speaker_embedding(campplus, speaker_features(wave_16k)), golden["fe/campplus_out"][0])
