"""A request becomes chunks of samples and a result, by its own seed, state and end."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from cosyvoice_worker.engine.errors import RequestError
from cosyvoice_worker.engine.synthesis import Randomness, Synthesizer
from cosyvoice_worker.engine.utterance import SpeechRequest, Utterance
from cosyvoice_worker.models.cosyvoice2.source import GeneratorNoise
from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.voices.voice import Voice, built_in
from tests.engine.steps import steps_of_a_chunk

END_OF_SPEECH = 6561
TOKEN_SAMPLES = 960


@pytest.fixture
def synthesizer(model, tokenizer):
    return Synthesizer(model, tokenizer)


def scripted(model, tokenizer, tokens):
    """A synthesizer whose language model says `tokens` and then ends, for every piece."""

    def sampling(_scores, decoded):
        return tokens[len(decoded)] if len(decoded) < len(tokens) else END_OF_SPEECH

    noise = GeneratorNoise(torch.Generator().manual_seed(0))
    return Synthesizer(model, tokenizer, lambda _seed: Randomness(sampling, noise))


def request(text="Hello there.", **wishes):
    return SpeechRequest(text=text, voice=built_in(), **wishes)


def utterance(pieces, *, stream=False, voice=None):
    return Utterance(
        pieces=pieces, prompt_text=(), prompt_token=(), voice=voice or built_in(), stream=stream, seed=0, speed=1.0
    )


def test_the_same_seed_speaks_the_same(synthesizer):
    first, second = (np.concatenate(list(synthesizer.synthesize(request(seed=3)))) for _ in range(2))

    assert np.array_equal(first, second)


def test_another_seed_speaks_otherwise(synthesizer):
    syntheses = [synthesizer.synthesize(request(seed=seed)) for seed in (3, 4)]
    for synthesis in syntheses:
        list(synthesis)

    assert syntheses[0].result.speech_tokens_sha256 != syntheses[1].result.speech_tokens_sha256


def test_a_seed_speaks_the_same_tokens_streamed_or_not(synthesizer):
    syntheses = [
        synthesizer.synthesize(request("Hello there. " * 10, seed=5, stream=stream)) for stream in (False, True)
    ]
    for synthesis in syntheses:
        list(synthesis)

    assert syntheses[0].result.speech_tokens_sha256 == syntheses[1].result.speech_tokens_sha256
    assert syntheses[0].result.samples == syntheses[1].result.samples


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**63 - 1, 2**64 - 1])
def test_any_64_bit_seed_will_do(synthesizer, seed):
    assert next(synthesizer.synthesize(request(seed=seed))).size


def test_speaking_neither_reads_nor_moves_the_global_random_state(synthesizer):
    before = torch.get_rng_state()

    list(synthesizer.synthesize(request()))

    assert torch.equal(torch.get_rng_state(), before)


def test_a_request_leaves_nothing_for_the_next(synthesizer):
    text = "Hello there, this is a short test, and it goes on."
    alone = [chunk.size for chunk in synthesizer.synthesize(request(text, stream=True))]
    abandoned = synthesizer.synthesize(request(text, stream=True))
    next(abandoned)
    del abandoned

    after = [chunk.size for chunk in synthesizer.synthesize(request(text, stream=True))]

    assert after == alone


def test_the_result_identifies_the_tokens_of_all_pieces(model, tokenizer):
    tokens = [5, 4000, 17, 6560]
    synthesis = scripted(model, tokenizer, tokens).speak(utterance(((1,), (2,))))

    chunks = list(synthesis)

    assert [chunk.size for chunk in chunks] == [len(tokens) * TOKEN_SAMPLES] * 2
    assert synthesis.result.speech_tokens == 2 * len(tokens)
    expected = hashlib.sha256(np.array(tokens * 2, "<i4").tobytes()).hexdigest()
    assert synthesis.result.speech_tokens_sha256 == expected
    assert synthesis.result.samples == sum(chunk.size for chunk in chunks)
    assert 0 < synthesis.result.first_chunk_seconds <= synthesis.result.seconds


def test_there_is_no_result_before_the_end(synthesizer):
    synthesis = synthesizer.synthesize(request())

    with pytest.raises(RuntimeError, match="after its last chunk"):
        synthesis.result  # noqa: B018 - reading it is the test


def test_each_piece_streams_from_the_start(model, tokenizer):
    tokens = list(range(100, 130))
    synthesis = scripted(model, tokenizer, tokens).speak(utterance(((1, 2), (3, 4)), stream=True))

    chunks = [chunk.size for chunk in synthesis]

    assert chunks[:2] == chunks[2:] == [25 * TOKEN_SAMPLES - 3840, 5 * TOKEN_SAMPLES + 3840]


def test_a_piece_without_speech_is_skipped(model, tokenizer):
    def sampling(_scores, decoded):
        return END_OF_SPEECH + 1  # ends the speech, and unlike END_OF_SPEECH even at once

    silent = Synthesizer(
        model, tokenizer, lambda _seed: Randomness(sampling, GeneratorNoise(torch.Generator().manual_seed(0)))
    )

    for stream in (False, True):
        synthesis = silent.speak(utterance(((1,),), stream=stream))
        assert list(synthesis) == []
        assert synthesis.result.speech_tokens == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("last_step", [1, 5, 45, 60])
def test_a_step_can_end_the_work(model, tokenizer, stream, last_step):
    """Steps 1 to 5 are speech tokens, the others are streaming the flow's, else tokens too and then the flow's."""
    steps = []

    def step():
        steps.append(None)
        if len(steps) == last_step:
            raise InterruptedError

    synthesis = scripted(model, tokenizer, list(range(50))).speak(utterance(((1, 2, 3),), stream=stream), step)

    with pytest.raises(InterruptedError):
        list(synthesis)
    assert len(steps) == last_step


def test_every_token_layer_and_chunk_is_a_step(model, tokenizer):
    steps = []
    synthesis = scripted(model, tokenizer, [1, 2, 3, 4, 5]).speak(utterance(((9,),)), lambda: steps.append(None))

    list(synthesis)

    assert len(steps) == (5 + 1) + steps_of_a_chunk(model)  # the end of speech is a token too


def test_what_the_language_model_raises_comes_out_of_the_stream(model, tokenizer):
    def sampling(_scores, decoded):
        if len(decoded) == 40:
            raise ZeroDivisionError
        return 7

    broken = Synthesizer(
        model, tokenizer, lambda _seed: Randomness(sampling, GeneratorNoise(torch.Generator().manual_seed(0)))
    )
    synthesis = broken.speak(utterance(((1, 2, 3),), stream=True))

    assert next(synthesis).size
    with pytest.raises(ZeroDivisionError):
        next(synthesis)


def test_more_speech_than_the_flow_can_take_is_refused(model, tokenizer):
    prompt_tokens = 7490  # leaves room for ten
    long_voice = Voice(
        name="long",
        prompt_text="",
        prompt_token=np.zeros(prompt_tokens, np.int32),
        prompt_mel=np.zeros((2 * prompt_tokens, 80), np.float32),
        embedding=np.zeros(192, np.float32),
    )
    endless = scripted(model, tokenizer, [3] * 50)

    with pytest.raises(RequestError) as refusal:
        list(endless.speak(utterance(((1, 2, 3),), voice=long_voice)))

    assert str(refusal.value) == "one piece of the text would take more than 0.4 s to speak: divide it into sentences"
    assert refusal.value.outcome.expected == "at most 10 speech tokens"


def test_samples_that_are_no_numbers_are_an_error(model, tokenizer):
    def broken_noise(samples, harmonics):
        return torch.full((1, samples, harmonics), torch.nan)

    def sampling(_scores, decoded):
        return 3 if len(decoded) < 4 else END_OF_SPEECH

    synthesizer = Synthesizer(model, tokenizer, lambda _seed: Randomness(sampling, broken_noise))

    with pytest.raises(WorkerError) as failure:
        list(synthesizer.speak(utterance(((1,),))))

    assert failure.value.outcome.reason is Reason.NON_FINITE_AUDIO


@pytest.mark.parametrize("stream", [False, True])
def test_a_lower_precision_speaks_as_long_and_almost_alike(model, tokenizer, stream):
    narrow = replace(model, lm=copy.deepcopy(model.lm).to(torch.bfloat16), dtype=torch.bfloat16)
    mels = {}

    for name, one in (("exact", model), ("rounded", narrow)):
        seen = mels[name] = []
        spy = one.flow.register_forward_hook(lambda _module, _inputs, mel, seen=seen: seen.append(mel))
        list(scripted(one, tokenizer, list(range(30))).speak(utterance(((1, 2),), stream=stream)))
        spy.remove()

    for exact, rounded in zip(mels["exact"], mels["rounded"], strict=True):
        assert rounded.dtype == torch.float32
        assert (exact - rounded).abs().mean() < 0.01 * exact.abs().mean()


def test_text_that_must_outgrow_the_flow_is_refused_before_any_work(model, tokenizer):
    """5,000 characters without an end mark: two speech tokens for each are more than the flow takes."""
    synthesizer = Synthesizer(model, tokenizer)

    with pytest.raises(RequestError, match="more than 300 s to speak: divide it into sentences"):
        synthesizer.synthesize(request("ㄅ" * 5000))
