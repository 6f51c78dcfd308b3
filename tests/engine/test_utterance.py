"""A request becomes ids: which prompt the language model hears, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cosyvoice_worker.engine.errors import RequestError
from cosyvoice_worker.engine.utterance import SpeechRequest, prepare
from cosyvoice_worker.voices.voice import Voice, built_in

TOKENS = (3, 1, 4)
TRANSCRIPT = "I have 3 dogs."
TRANSCRIPT_AS_READ = "I have three dogs."


def voice(prompt_text=TRANSCRIPT, tokens=TOKENS):
    return Voice(
        name="someone",
        prompt_text=prompt_text,
        prompt_token=np.array(tokens, np.int32),
        prompt_mel=np.zeros((2 * len(tokens), 80), np.float32),
        embedding=np.ones(192, np.float32),
    )


def request(text="Hello.", *, by=None, **wishes):
    return SpeechRequest(text=text, voice=by or voice(), **wishes)


@pytest.mark.parametrize(
    ("by", "instructions", "prompt_text", "prompt_token"),
    [
        pytest.param(voice(), None, TRANSCRIPT_AS_READ, TOKENS, id="zero-shot"),
        pytest.param(voice(prompt_text=""), None, "", (), id="cross-lingual"),
        pytest.param(voice(tokens=()), None, "", (), id="an embedding alone, with a transcript of nothing"),
        pytest.param(built_in(), None, "", (), id="built-in"),
        pytest.param(voice(), "speak 2 times", "speak 2 times<|endofprompt|>", (), id="instruct"),
        pytest.param(voice(), "slowly<|endofprompt|>", "slowly<|endofprompt|>", (), id="instruct, marked already"),
        pytest.param(voice(), "", TRANSCRIPT_AS_READ, TOKENS, id="an empty instruction is none"),
    ],
)
def test_what_the_language_model_goes_on_from(tokenizer, by, instructions, prompt_text, prompt_token):
    utterance = prepare(request(by=by, instructions=instructions), tokenizer)

    assert utterance.prompt_text == tuple(tokenizer.encode(prompt_text))
    assert utterance.prompt_token == prompt_token
    assert utterance.voice is by


def test_each_sentence_group_is_a_piece_of_its_own(tokenizer):
    sentence = "This sentence is here to be long enough to stand on its own, or nearly so. "

    utterance = prepare(request(sentence * 8), tokenizer)

    assert len(utterance.pieces) > 1
    assert all(utterance.pieces)


def test_a_text_with_control_tags_is_one_piece_as_it_stands(tokenizer):
    text = "<|en|>One. Two. 3."

    assert prepare(request(text), tokenizer).pieces == (tuple(tokenizer.encode(text)),)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"text": ""}, "the text has no letter or digit: there is nothing to speak"),
        ({"text": "  \n "}, "the text has no letter or digit: there is nothing to speak"),
        ({"text": "?!… — ()"}, "the text has no letter or digit: there is nothing to speak"),
        ({"speed": 1.5, "stream": True}, "speed 1.5 cannot be streamed: leave it at 1 or do not stream"),
        ({"speed": 0.0}, "speed 0 is not 0.25 to 4"),
        ({"speed": 1e-4}, "speed 0.0001 is not 0.25 to 4"),
        ({"speed": 1e6}, "speed 1e+06 is not 0.25 to 4"),
        ({"speed": float("nan")}, "speed nan is not 0.25 to 4"),
    ],
)
def test_what_cannot_be_spoken_is_refused_with_advice(tokenizer, wishes, message):
    with pytest.raises(RequestError) as refusal:
        prepare(request(**wishes), tokenizer)

    assert str(refusal.value) == message


def test_a_stream_at_the_models_own_speed_is_fine(tokenizer):
    assert prepare(request(speed=1.0, stream=True), tokenizer).stream
