"""The warm-up speaks each text whole and streaming, at a fixed cost, and refuses what nobody should hear."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from cosyvoice_worker.engine.warmup import warm_up
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.settings import WarmUp
from cosyvoice_worker.voices.voice import Voice, built_in
from tests.engine.steps import steps_of_a_chunk

TEXT = "Hello, this is a warm-up."


class Counter:
    """Counts the steps of a warm-up; ends it at step `last` with `error`."""

    def __init__(self, last: int | None = None, error: Exception | None = None) -> None:
        self.steps = 0
        self.last = last
        self.error = error

    def __call__(self) -> None:
        self.steps += 1
        if self.steps == self.last and self.error is not None:
            raise self.error


def anna(tokens: int = 10) -> Voice:
    """A voice with a prompt."""
    return Voice(
        name="anna",
        prompt_text="It is a prompt.",
        prompt_token=np.arange(tokens, dtype=np.int32),
        prompt_mel=np.zeros((2 * tokens, 80), np.float32),
        embedding=np.ones(192, np.float32),
    )


def with_bias(model, change):
    """The model with another bias of the vocoder's last layer, whose first half is the logarithm of the loudness."""
    hift = copy.deepcopy(model.hift)
    bias = hift.conv_post.bias.detach().clone()
    change(bias)
    hift.conv_post.bias = nn.Parameter(bias, requires_grad=False)
    return replace(model, hift=hift)


def silent(bias: torch.Tensor) -> None:
    bias[:9] = -100.0


def not_a_number(bias: torch.Tensor) -> None:
    bias[:] = torch.nan


def outcome_of(model, tokenizer, voice: Voice, step: Counter | None = None, text: str = TEXT) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        warm_up(model, tokenizer, WarmUp(texts=[text]), voice, step or Counter())
    return raised.value.outcome


@pytest.mark.parametrize("voice", [built_in(), anna(), anna(tokens=30)], ids=["built-in", "10 tokens", "30 tokens"])
def test_a_good_model_passes_with_any_voice(model, tokenizer, voice):
    warm_up(model, tokenizer, WarmUp(texts=[TEXT, "你好。"]), voice, Counter())


@pytest.mark.parametrize("text", ["A", TEXT, "This is a longer text. " * 40])
def test_the_length_of_the_text_does_not_change_the_cost(model, tokenizer, text):
    step = Counter()

    warm_up(model, tokenizer, WarmUp(texts=[text]), built_in(), step)

    # Whole: 25 tokens and the look that finds the end, a chunk. Streaming: 25 + 3 tokens, a chunk.
    assert step.steps == (25 + 1) + (25 + 3) + 2 * steps_of_a_chunk(model)


def test_max_seconds_bounds_what_is_spoken_whole(model, tokenizer):
    short, long = Counter(), Counter()

    warm_up(model, tokenizer, WarmUp(texts=[TEXT], max_seconds=0.2), built_in(), short)
    warm_up(model, tokenizer, WarmUp(texts=[TEXT], max_seconds=1.0), built_in(), long)

    assert long.steps - short.steps == 20


def test_audio_that_is_no_numbers_is_refused(model, tokenizer):
    outcome = outcome_of(with_bias(model, not_a_number), tokenizer, built_in())

    assert (outcome.reason, outcome.exit_code, outcome.phase) == (Reason.NON_FINITE_AUDIO, 70, Phase.WARM_UP)
    assert outcome.message.startswith(f"warm-up of '{TEXT}' with the built-in voice, not streaming: the model gave ")


def test_silent_audio_is_refused(model, tokenizer):
    outcome = outcome_of(with_bias(model, silent), tokenizer, anna())

    assert (outcome.reason, outcome.exit_code, outcome.phase) == (Reason.SILENT_AUDIO, 70, Phase.WARM_UP)
    assert outcome.message == f"warm-up of '{TEXT}' with voice 'anna', not streaming: the audio is silent"
    assert outcome.expected == "a peak of at least 0.001"


def test_silence_of_the_built_in_voice_is_nobodys_fault(model, tokenizer):
    warm_up(with_bias(model, silent), tokenizer, WarmUp(texts=[TEXT]), built_in(), Counter())


def test_any_exception_is_a_failed_warm_up_that_names_text_and_voice(model, tokenizer):
    outcome = outcome_of(model, tokenizer, anna(), Counter(150, ZeroDivisionError("division by zero")))

    assert (outcome.reason, outcome.exit_code) == (Reason.WARM_UP_FAILED, 70)
    assert outcome.message == (f"warm-up of '{TEXT}' with voice 'anna', streaming: ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_memory_that_is_refused_is_told_apart(model, tokenizer, error):
    outcome = outcome_of(model, tokenizer, built_in(), Counter(5, error))

    assert (outcome.reason, outcome.exit_code, outcome.retryable) == (Reason.OUT_OF_MEMORY, 71, True)


def test_a_text_that_cannot_be_spoken_is_an_error_of_the_configuration(model, tokenizer):
    outcome = outcome_of(model, tokenizer, built_in(), text="...")

    assert (outcome.reason, outcome.exit_code) == (Reason.INVALID_CONFIG, 64)
    assert outcome.message == (
        "warm-up of '...' with the built-in voice, not streaming: the text has no letter or digit: there is nothing to "
        "speak"
    )
