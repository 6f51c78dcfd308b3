"""Text becomes the recorded sound: every way of speaking, from the text's ids to the samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from cosyvoice_worker.engine.synthesis import Randomness, Synthesizer
from cosyvoice_worker.engine.utterance import INSTRUCTION_END, Utterance
from cosyvoice_worker.voices.voice import Voice
from tests.engine.recorded import RecordedNoise, exact, names

END_OF_SPEECH = 6561
LONG = "Hello there, this is a short test, and it goes on."
SHORT = "Hello there, 你好。"
TRANSCRIPT = "It is a prompt."
INSTRUCTION = "speak slowly" + INSTRUCTION_END

# The samples follow the pitch's last bits, which differ between builds of PyTorch.
LIMITS = {
    "mel0_head": {"atol": 1e-3},
    "mel_last_tail": {"atol": 1e-3},
    "rms_per_1000": {"atol": 5e-3},
    "wav_boundary": {"atol": 1e-2},
}
SAMPLES = ("wav_head", "wav_tail")


@dataclass(frozen=True)
class Case:
    text: str
    tokens: int
    prompt_text: str = ""
    goes_on: bool = False  # whether the language model hears the recording
    stream: bool = False
    speed: float = 1.0


CASES = {
    "zero_shot": Case(LONG, 96, TRANSCRIPT, goes_on=True),
    "zero_shot_stream": Case(LONG, 96, TRANSCRIPT, goes_on=True, stream=True),
    "cross_lingual": Case(SHORT, 40),
    "instruct2": Case(SHORT, 40, INSTRUCTION),
    "speed125": Case(SHORT, 40, speed=1.25),
}


class LikeliestSpeech:
    """The recording's sampler: the likeliest speech token, and the end after `count` of them. Keeps what it chose."""

    def __init__(self, count):
        self.count = count
        self.chosen = []

    def __call__(self, scores, decoded):
        if len(decoded) == self.count:
            return END_OF_SPEECH
        self.chosen.append(int(scores[:END_OF_SPEECH].argmax()))
        return self.chosen[-1]


@pytest.fixture(scope="module")
def voice(golden):
    tokens, mel = golden["fe/speech_token"].reshape(-1), golden["fe/prompt_mel"][0]
    count = min(len(mel) // 2, len(tokens))
    return Voice(
        name="recorded",
        prompt_text=TRANSCRIPT,
        prompt_token=tokens[:count].astype(np.int32),
        prompt_mel=mel[: 2 * count].copy(),
        embedding=golden["fe/campplus_out"].reshape(-1).copy(),
    )


@pytest.fixture(scope="module")
def computed(model, tokenizer, voice):
    """Everything that was recorded under e2e/, computed here."""
    values = {}
    for name, case in CASES.items():
        utterance = Utterance(
            pieces=(tuple(tokenizer.encode(case.text)),),
            prompt_text=tuple(tokenizer.encode(case.prompt_text)),
            prompt_token=tuple(voice.prompt_token.tolist()) if case.goes_on else (),
            voice=voice,
            stream=case.stream,
            seed=0,
            speed=case.speed,
        )
        values |= {f"e2e/{name}/{key}": value for key, value in spoken(model, utterance, name, case).items()}
    return values


def spoken(model, utterance, name, case):
    sampling = LikeliestSpeech(case.tokens)
    synthesizer = Synthesizer(model, None, lambda _seed: Randomness(sampling, RecordedNoise(f"e2e/{name}")))
    flow_tokens, mels = [], []
    spy = model.flow.register_forward_hook(
        lambda _module, args, mel: (flow_tokens.append(args[0]), mels.append(mel), None)[-1]
    )
    synthesis = synthesizer.speak(utterance)
    chunks = list(synthesis)
    spy.remove()

    assert synthesis.result.speech_tokens == case.tokens
    samples = np.concatenate(chunks)
    values = {
        "llm_tokens": np.array(sampling.chosen),
        "chunk_lens": np.array([chunk.size for chunk in chunks]),
        "chunk_token_counts": np.array([tokens.shape[1] for tokens in flow_tokens]),
        "last_flow_tokens": flow_tokens[-1][0].numpy(),
        "mel0_head": mels[0][:, :, :40].numpy(),
        "mel_last_tail": mels[-1][:, :, -20:].numpy(),
        "mel_frames": np.array([mel.shape[2] for mel in mels]),
        "wav_head": samples[:8000],
        "wav_tail": samples[-2000:],
        "rms_per_1000": np.sqrt(np.square(samples[: len(samples) // 1000 * 1000].reshape(-1, 1000)).mean(axis=1)),
    }
    if len(chunks) > 1:
        boundary = chunks[0].size
        values["wav_boundary"] = samples[boundary - 2500 : boundary + 2500]
    return values


@pytest.mark.parametrize("name", names("e2e/"))
def test_equals_the_recorded(name, computed, golden, close):
    actual, expected, key = computed[name], golden[name], name.rsplit("/", 1)[1]
    if exact(expected):
        assert np.array_equal(actual, expected)
    elif key in SAMPLES:
        assert actual.shape == expected.shape
        assert np.mean(np.abs(actual - expected) <= 5e-2) >= 0.999
    else:
        close(actual, expected, **LIMITS[key])


def test_streaming_does_not_change_the_tokens(computed):
    assert np.array_equal(computed["e2e/zero_shot/llm_tokens"], computed["e2e/zero_shot_stream/llm_tokens"])


def test_speaking_needs_no_gradient_and_leaves_none(model):
    assert not any(parameter.requires_grad for parameter in model.flow.parameters())
    assert torch.is_grad_enabled()
