"""The speech language model: text and a voice's prompt to speech tokens, one by one (`llm.pt`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.config import BackboneConfig
from cosyvoice_worker.models.cosyvoice2.qwen2 import Cache, Linear, Qwen2, Qwen2Sizes
from cosyvoice_worker.models.cosyvoice2.shapes import Shapes
from cosyvoice_worker.outcome import Phase, Reason, fail

FILE = "llm.pt"
# The backbone's own head: published files carry it (it is the text embedding again), nothing computes with it.
UNUSED_TENSOR = "llm.model.lm_head.weight"
BACKBONE = "llm.model.model."

# Rows of `llm_embedding`.
START_OF_SEQUENCE = 0
TASK = 1
# Ids after the speech tokens: end of speech, and two more that end it as well.
CONTROL_TOKENS = 3

MIN_TOKENS_PER_TEXT_TOKEN = 2
MAX_TOKENS_PER_TEXT_TOKEN = 20

# Rows of a prompt computed at once: 5,000 of them would be minutes without a sign of progress on a CPU.
PREFILL_ROWS = 256

Inner = TypeVar("Inner", bound=nn.Module)

# The next id, by the log-probabilities of all (V, float32, on the CPU) and the ids before it.
Sampling = Callable[[Tensor, Sequence[int]], int]


@dataclass(frozen=True, slots=True)
class SpeechLMSizes:
    """Widths and depth, as the checkpoint's tensors tell them."""

    ids: int  # speech tokens and control tokens
    backbone: Qwen2Sizes


@dataclass(frozen=True, slots=True)
class LMInput:
    """What is to be said, and the prompt whose manner it continues; all are ids, the prompt's may be empty."""

    text: Sequence[int]
    prompt_text: Sequence[int] = ()
    prompt_tokens: Sequence[int] = ()


class Level(nn.Module, Generic[Inner]):
    """A level of the checkpoint's names that computes nothing itself."""

    model: Inner

    def __init__(self, model: Inner) -> None:
        super().__init__()
        self.model = model


class SpeechLM(nn.Module):
    """Qwen2 over text and speech embeddings, with a head for speech tokens. Keeps no state between sequences."""

    def __init__(self, sizes: SpeechLMSizes, config: BackboneConfig) -> None:
        super().__init__()
        channels = sizes.backbone.channels
        self.end_of_speech = sizes.ids - CONTROL_TOKENS
        self.llm_embedding = nn.Embedding(2, channels)
        self.llm = Level(Level(Qwen2(sizes.backbone, config)))
        self.llm_decoder = Linear(channels, sizes.ids)
        self.speech_embedding = nn.Embedding(sizes.ids, channels)

    @property
    def backbone(self) -> Qwen2:
        return self.llm.model.model

    @property
    def device(self) -> torch.device:
        return self.llm_decoder.weight.device

    @torch.inference_mode()
    def embed(self, given: LMInput) -> Tensor:
        """The rows a sequence starts with: start, prompt text and text, task, prompt tokens. (L, C)."""
        start, task = self.llm_embedding.weight[:, None]  # (1, C) each
        text = self.backbone.embed_tokens(self._ids([*given.prompt_text, *given.text]))
        prompt = self.speech_embedding(self._ids(given.prompt_tokens))
        return torch.cat((start, text, task, prompt))

    @torch.inference_mode()
    def scores(self, rows: Tensor, cache: Cache, *, may_end: bool = True) -> Tensor:
        """Log-probabilities (V, float32, on the CPU) of what follows the next `rows` (T, C) of the sequence.

        The end of speech is impossible unless it `may_end`.
        """
        hidden = self.backbone(rows, cache)[-1:]
        scores: Tensor = self.llm_decoder(hidden)[0].float().log_softmax(dim=0)
        if not may_end:
            scores[self.end_of_speech] = -torch.inf
        return scores.cpu()

    def generate(
        self, given: LMInput, sampling: Sampling, *, on_step: Callable[[], None], max_tokens: int | None = None
    ) -> Iterator[int]:
        """Speech tokens, at least 2 and at most 20 for each token of `given.text` (and at most `max_tokens`).

        Args:
            given: ids of this model's tokenizer, and speech tokens.
            sampling: how a token is chosen.
            on_step: called before each token and each part of a long prompt; what it raises ends the sequence.
            max_tokens: where to stop although the speech has not ended.

        Raises WorkerError (NonFiniteAudio) where the weights give scores that are no numbers.
        """
        shortest = MIN_TOKENS_PER_TEXT_TOKEN * len(given.text)
        longest = MAX_TOKENS_PER_TEXT_TOKEN * len(given.text)
        if max_tokens is not None:
            longest = min(longest, max_tokens)
        rows = self.embed(given)
        cache = self.backbone.new_cache(rows.shape[0] + longest)
        rows = self._prefill(rows, cache, on_step)
        decoded: list[int] = []
        while len(decoded) < longest:
            on_step()
            scores = self.scores(rows, cache, may_end=len(decoded) >= shortest)
            _require_numbers(scores, len(decoded))
            token = sampling(scores, decoded)
            if token >= self.end_of_speech:
                return
            yield token
            decoded.append(token)
            rows = self._speech_row(token)

    @torch.inference_mode()
    def _prefill(self, rows: Tensor, cache: Cache, on_step: Callable[[], None]) -> Tensor:
        """Take all but the last part of a sequence's first rows into the cache; that last part."""
        last = (rows.shape[0] - 1) // PREFILL_ROWS * PREFILL_ROWS
        for start in range(0, last, PREFILL_ROWS):
            on_step()
            self.backbone(rows[start : start + PREFILL_ROWS], cache)
        return rows[last:]

    @torch.inference_mode()
    def _speech_row(self, token: int) -> Tensor:
        return self.speech_embedding.weight[token : token + 1]

    def _ids(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor(ids, dtype=torch.int64, device=self.device)


def speech_lm_sizes(state: Mapping[str, Tensor]) -> SpeechLMSizes:
    """Sizes from the tensors of llm.pt; raises WorkerError naming a tensor that is missing or has another rank."""
    shapes = Shapes(FILE, state)
    vocabulary, channels = shapes.of(f"{BACKBONE}embed_tokens.weight", 2)
    layer = f"{BACKBONE}layers.0."
    return SpeechLMSizes(
        ids=shapes.of("llm_decoder.weight", 2)[0],
        backbone=Qwen2Sizes(
            vocabulary=vocabulary,
            channels=channels,
            layers=shapes.count(f"{BACKBONE}layers."),
            hidden=shapes.of(f"{layer}mlp.gate_proj.weight", 2)[0],
            query=shapes.of(f"{layer}self_attn.q_proj.weight", 2)[0],
            key_value=shapes.of(f"{layer}self_attn.k_proj.weight", 2)[0],
        ),
    )


def build_speech_lm(sizes: SpeechLMSizes, config: BackboneConfig) -> SpeechLM:
    """The module whose parameter names and shapes are those of llm.pt."""
    return SpeechLM(sizes, config).eval()


def _require_numbers(scores: Tensor, step: int) -> None:
    if scores.isnan().any():
        message = f"the language model's scores are not finite at token {step}: are the weights in {FILE} intact?"
        raise fail(Reason.NON_FINITE_AUDIO, Phase.SERVE, message, file=FILE, expected="finite", actual="NaN")
