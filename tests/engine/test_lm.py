"""The speech language model, held to recorded results of the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from cosyvoice_worker.models.cosyvoice2 import config
from cosyvoice_worker.models.cosyvoice2.lm import (
    PREFILL_ROWS,
    UNUSED_TENSOR,
    LMInput,
    SpeechLM,
    build_speech_lm,
    speech_lm_sizes,
)
from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.weights import checkpoint
from cosyvoice_worker.weights.assign import assign
from cosyvoice_worker.weights.build import hollow

Golden = Mapping[str, npt.NDArray[Any]]


@pytest.fixture(scope="module")
def lm(tiny_model_dir: Path) -> SpeechLM:
    state = checkpoint.read(tiny_model_dir / "llm.pt")
    del state[UNUSED_TENSOR]
    backbone = config.read(tiny_model_dir).backbone
    module = hollow(lambda: build_speech_lm(speech_lm_sizes(state), backbone))
    assign(module, state, "llm.pt")
    return module


@pytest.fixture(scope="module")
def given(golden: Golden) -> LMInput:
    return LMInput(
        text=golden["llm/text"][0].tolist(),
        prompt_text=golden["llm/prompt_text"][0].tolist(),
        prompt_tokens=golden["llm/prompt_speech_token"][0].tolist(),
    )


def most_likely(scores: Tensor, decoded: Sequence[int]) -> int:
    return int(scores.argmax())


def nothing() -> None:
    pass


class Script:
    """Returns what it was given, then 1 for ever, and notes which ids were masked at each step."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = list(ids)
        self.masked: list[list[int]] = []

    def __call__(self, scores: Tensor, _: Sequence[int]) -> int:
        self.masked.append(torch.nonzero(scores == -torch.inf).flatten().tolist())
        return self._ids.pop(0) if self._ids else 1


def test_the_input_is_start_texts_task_and_prompt_tokens(
    lm: SpeechLM, given: LMInput, golden: Golden, close: Any
) -> None:
    rows = lm.embed(given)

    close(rows[None], golden["llm/lm_input"], rtol=0, atol=0)


def test_the_input_without_a_prompt_is_start_text_and_task(lm: SpeechLM, golden: Golden, close: Any) -> None:
    rows = lm.embed(LMInput(golden["llm/text"][0].tolist()))

    close(rows[None], golden["llm/lm_input_no_prompt"], rtol=0, atol=0)


def test_each_layer_computes_what_was_recorded(lm: SpeechLM, given: LMInput, golden: Golden, close: Any) -> None:
    modules = {"l0_attn": "layers.0.self_attn", "l0": "layers.0", "l1": "layers.1"}
    outputs: dict[str, Tensor] = {}
    handles = [
        lm.backbone.get_submodule(module).register_forward_hook(
            lambda _, __, output, name=name: outputs.__setitem__(name, output)
        )
        for name, module in modules.items()
    ]

    lm.scores(lm.embed(given), lm.backbone.new_cache(64))
    for handle in handles:
        handle.remove()

    for name in modules:
        close(outputs[name][None], golden[f"llm/tap/{name}"])


def test_the_hidden_rows_and_the_first_logits_are_those_recorded(
    lm: SpeechLM, given: LMInput, golden: Golden, close: Any
) -> None:
    with torch.inference_mode():
        hidden = lm.backbone(lm.embed(given), lm.backbone.new_cache(64))
        logits = lm.llm_decoder(hidden[-1:])[0]

    close(hidden[None], golden["llm/hidden0"])
    close(logits, golden["llm/logits0"])


def forced(lm: SpeechLM, given: LMInput, tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Hidden rows (n, C) and logits (n, V), each after the input and the tokens before it."""
    cache, rows, hidden = lm.backbone.new_cache(64), lm.embed(given), []
    with torch.inference_mode():
        for token in tokens:
            hidden.append(lm.backbone(rows, cache)[-1])
            rows = lm.speech_embedding.weight[token : token + 1]
        return torch.stack(hidden), lm.llm_decoder(torch.stack(hidden))


def test_forced_tokens_lead_to_the_recorded_rows_and_scores(
    lm: SpeechLM, given: LMInput, golden: Golden, close: Any
) -> None:
    hidden, logits = forced(lm, given, [*golden["llm/tf_prefix"].tolist(), 0])

    close(hidden, golden["llm/tf_hidden"])
    close(logits, golden["llm/tf_logits"])
    close(logits.log_softmax(dim=1).topk(8).values, golden["llm/tf_logp_top8"])


def test_row_by_row_and_all_at_once_agree(lm: SpeechLM, given: LMInput, close: Any) -> None:
    rows = lm.embed(given)
    cache = lm.backbone.new_cache(rows.shape[0])
    with torch.inference_mode():
        at_once = lm.backbone(rows, lm.backbone.new_cache(rows.shape[0]))
        in_pieces = torch.cat([lm.backbone(piece, cache) for piece in (rows[:1], rows[1:6], rows[6:7], rows[7:])])

    close(in_pieces, at_once.numpy())


def test_greedy_decoding_gives_the_recorded_tokens(lm: SpeechLM, given: LMInput, golden: Golden, close: Any) -> None:
    expected = golden["llm/greedy_tokens"].tolist()

    tokens = list(lm.generate(given, most_likely, on_step=nothing, max_tokens=len(expected)))
    top = forced(lm, given, tokens)[1].topk(5)

    assert tokens == expected
    assert top.indices.tolist() == golden["llm/greedy_top5_ids"].tolist()
    close(top.values, golden["llm/greedy_top5_logits"])


@pytest.mark.parametrize("case", ["forced_stop", "forced_stop_other"])
def test_every_control_token_ends_the_speech_without_being_spoken(
    case: str, lm: SpeechLM, given: LMInput, golden: Golden
) -> None:
    script = Script(golden[f"llm/{case}_script"].tolist())

    tokens = list(lm.generate(given, script, on_step=nothing))

    assert tokens == golden[f"llm/{case}_out"].tolist()
    assert script.masked[0] == golden[f"llm/{case}_masked_ids_step0"].tolist()


def test_the_end_is_masked_for_two_tokens_per_text_token(lm: SpeechLM, given: LMInput, golden: Golden) -> None:
    expected = golden["llm/eos_masked_per_step"].tolist()
    script = Script([])

    list(lm.generate(given, script, on_step=nothing, max_tokens=len(expected)))

    assert [int(bool(ids)) for ids in script.masked] == expected


def test_speech_ends_at_twenty_tokens_per_text_token(lm: SpeechLM, golden_info: dict[str, Any]) -> None:
    tokens = list(lm.generate(LMInput([5] * 12), Script([]), on_step=nothing))

    assert len(tokens) == golden_info["max_len for 12 text tokens"]


def test_no_text_gives_no_tokens(lm: SpeechLM) -> None:
    assert list(lm.generate(LMInput([]), most_likely, on_step=nothing)) == []


def test_two_sequences_at_once_do_not_disturb_each_other(lm: SpeechLM, given: LMInput) -> None:
    def sequence() -> Any:
        return lm.generate(given, most_likely, on_step=nothing, max_tokens=12)

    alone = list(sequence())

    pairs = list(zip(sequence(), sequence(), strict=True))

    assert pairs == [(token, token) for token in alone]


def test_what_a_step_raises_ends_the_sequence(lm: SpeechLM, given: LMInput) -> None:
    steps = iter([None, None, KeyboardInterrupt("cancelled")])

    def on_step() -> None:
        if error := next(steps):
            raise error

    tokens = lm.generate(given, most_likely, on_step=on_step)

    assert [next(tokens), next(tokens)] == list(lm.generate(given, most_likely, on_step=nothing, max_tokens=2))
    with pytest.raises(KeyboardInterrupt):
        next(tokens)


def test_weights_that_are_no_numbers_are_said_to_be_so(tiny_model_dir: Path, given: LMInput) -> None:
    state = checkpoint.read(tiny_model_dir / "llm.pt")
    del state[UNUSED_TENSOR]
    state["llm_decoder.bias"] = torch.full_like(state["llm_decoder.bias"], torch.nan)
    backbone = config.read(tiny_model_dir).backbone
    broken = hollow(lambda: build_speech_lm(speech_lm_sizes(state), backbone))
    assign(broken, state, "llm.pt")

    with pytest.raises(WorkerError, match="not finite at token 0") as raised:
        next(broken.generate(given, most_likely, on_step=nothing))

    assert raised.value.outcome.reason == Reason.NON_FINITE_AUDIO
    assert raised.value.outcome.file == "llm.pt"


def test_more_rows_than_the_cache_holds_are_refused(lm: SpeechLM) -> None:
    cache = lm.backbone.new_cache(2)

    with pytest.raises(ValueError, match="more than the cache's 2"):
        lm.scores(lm.embed(LMInput([1])), cache)


def test_a_long_prompt_is_taken_in_parts_that_are_steps_each(lm: SpeechLM) -> None:
    given = LMInput(([5, 9, 30] * PREFILL_ROWS)[: 2 * PREFILL_ROWS])  # with start and task it is two rows more
    steps: list[None] = []

    token = next(lm.generate(given, most_likely, on_step=lambda: steps.append(None)))
    at_once = lm.scores(rows := lm.embed(given), lm.backbone.new_cache(rows.shape[0]), may_end=False)

    assert len(steps) == 2 + 1
    assert token == int(at_once.argmax())
