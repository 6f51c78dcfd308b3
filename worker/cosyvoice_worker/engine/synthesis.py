"""An utterance becomes sound: text ids to speech tokens to samples, piece by piece.

One thread does it all. While a stream's tokens arrive, the language model waits whenever a chunk is made; so what it
raises comes out where it belongs, and a consumer that stops asking stops everything.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from cosyvoice_worker.engine.errors import RequestError
from cosyvoice_worker.engine.utterance import SpeechRequest, Tokenizer, Utterance, prepare
from cosyvoice_worker.models.cosyvoice2.cfm import MAX_FRAMES
from cosyvoice_worker.models.cosyvoice2.flow import MEL_FRAMES_PER_TOKEN, Prompt
from cosyvoice_worker.models.cosyvoice2.lm import MIN_TOKENS_PER_TEXT_TOKEN, LMInput, Sampling
from cosyvoice_worker.models.cosyvoice2.model import CosyVoice2
from cosyvoice_worker.models.cosyvoice2.sampling import RepetitionAwareSampling, drawing
from cosyvoice_worker.models.cosyvoice2.source import GeneratorNoise, Noise
from cosyvoice_worker.models.cosyvoice2.token2wav import Samples, Token2Wav
from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.voices.voice import Voice

# Tells the noise's seed from the tokens'.
NOISE_SEED_STEP = 0x9E3779B97F4A7C15
SEED_BITS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Randomness:
    """Every random choice of one utterance."""

    sampling: Sampling
    noise: Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisResult:
    """What identifies an utterance's content, and how long it took."""

    speech_tokens: int
    speech_tokens_sha256: str  # over all pieces' ids as int32 little-endian
    samples: int
    first_chunk_seconds: float
    seconds: float


def nothing() -> None:
    """A step that nobody counts."""


class Synthesizer:
    """Speaks requests with one model; keeps nothing of one for the next."""

    def __init__(
        self, model: CosyVoice2, tokenizer: Tokenizer, randomness: Callable[[int], Randomness] | None = None
    ) -> None:
        """`randomness` makes a request's random choices from its seed; by default the model's own sampling."""
        self._model = model
        self._tokenizer = tokenizer
        self._randomness = randomness or self._seeded

    def synthesize(self, request: SpeechRequest, on_step: Callable[[], None] = nothing) -> Synthesis:
        """Samples of `request`. Raises RequestError where it cannot be spoken; iterating raises more."""
        return self.speak(prepare(request, self._tokenizer), on_step)

    def speak(self, utterance: Utterance, on_step: Callable[[], None] = nothing) -> Synthesis:
        """Samples of an utterance that is prepared already. Raises RequestError where a piece is certainly too long."""
        limit = most_tokens(utterance.voice)
        if any(MIN_TOKENS_PER_TEXT_TOKEN * len(piece) > limit for piece in utterance.pieces):
            raise _too_long(limit, self._model.config.token_rate)
        return Synthesis(self._model, utterance, self._randomness(utterance.seed), on_step)

    def _seeded(self, seed: int) -> Randomness:
        """Tokens and noise have a generator each, so that a seed gives the same tokens streamed or not."""
        tokens = torch.Generator().manual_seed(seed & SEED_BITS)
        noise = torch.Generator().manual_seed((seed + NOISE_SEED_STEP) & SEED_BITS)
        return Randomness(RepetitionAwareSampling(self._model.config.sampling, drawing(tokens)), GeneratorNoise(noise))


class Synthesis(Iterator[Samples]):
    """The chunks of one utterance, float32 at the model's rate, made as they are asked for; then its `result`.

    Not streaming, each piece of text is one chunk. Whatever `on_step` raises (it is called for every speech token,
    every layer of the flow and the vocoder, and every chunk) ends the work and comes out of the iteration. Raises
    RequestError for a piece whose speech outgrows the flow, WorkerError (NonFiniteAudio) for samples that are no
    numbers.
    """

    def __init__(
        self, model: CosyVoice2, utterance: Utterance, randomness: Randomness, on_step: Callable[[], None]
    ) -> None:
        self._model = model
        self._utterance = utterance
        self._randomness = randomness
        self._on_step = on_step
        self._tokens = 0
        self._digest = hashlib.sha256()
        self._samples = 0
        self._start = time.monotonic()
        self._first_chunk: float | None = None
        self._result: SynthesisResult | None = None
        self._chunks = self._run()

    def __next__(self) -> Samples:
        return next(self._chunks)

    @property
    def result(self) -> SynthesisResult:
        """Of the whole utterance; RuntimeError before its end."""
        if self._result is None:
            raise RuntimeError("the result of a synthesis is known after its last chunk")
        return self._result

    def _run(self) -> Iterator[Samples]:
        prompt = flow_prompt(self._utterance.voice, self._model.device)
        for piece in self._utterance.pieces:
            token2wav = Token2Wav(self._model, prompt, self._randomness.noise, self._on_step)
            tokens = self._speech_tokens(piece)
            for chunk in token2wav.stream(tokens) if self._utterance.stream else self._whole(token2wav, tokens):
                self._on_step()
                yield self._checked(chunk)
        seconds = time.monotonic() - self._start
        self._result = SynthesisResult(
            speech_tokens=self._tokens,
            speech_tokens_sha256=self._digest.hexdigest(),
            samples=self._samples,
            first_chunk_seconds=seconds if self._first_chunk is None else self._first_chunk,
            seconds=seconds,
        )

    def _whole(self, token2wav: Token2Wav, tokens: Iterator[int]) -> Iterator[Samples]:
        if arrived := list(tokens):
            yield token2wav.whole(arrived, self._utterance.speed)

    def _speech_tokens(self, piece: tuple[int, ...]) -> Iterator[int]:
        """The piece's speech tokens as the language model makes them, counted."""
        utterance = self._utterance
        limit = most_tokens(utterance.voice)
        generated = self._model.lm.generate(
            LMInput(piece, utterance.prompt_text, utterance.prompt_token),
            self._randomness.sampling,
            on_step=self._on_step,
            max_tokens=limit + 1,
        )
        for count, token in enumerate(generated):
            if count == limit:
                raise _too_long(limit, self._model.config.token_rate)
            self._tokens += 1
            self._digest.update(token.to_bytes(4, "little"))
            yield token

    def _checked(self, chunk: Samples) -> Samples:
        if not np.isfinite(chunk).all():
            message = "the model gave samples that are no numbers: its weights are damaged, or its dtype is too narrow"
            raise fail(
                Reason.NON_FINITE_AUDIO, Phase.SERVE, message, expected="finite samples", actual="NaN or infinity"
            )
        if self._first_chunk is None:
            self._first_chunk = time.monotonic() - self._start
        self._samples += chunk.size
        return chunk


def most_tokens(voice: Voice) -> int:
    """How many speech tokens one piece may have: the flow solves them together with the voice's prompt."""
    return MAX_FRAMES // MEL_FRAMES_PER_TOKEN - voice.prompt_token.size


def _too_long(limit: int, token_rate: int) -> RequestError:
    seconds = limit / token_rate
    message = f"one piece of the text would take more than {seconds:g} s to speak: divide it into sentences"
    return RequestError(message, expected=f"at most {limit} speech tokens", actual=f"more than {limit}")


def flow_prompt(voice: Voice, device: torch.device) -> Prompt:
    """The voice's arrays as the flow takes them."""
    return Prompt(
        token=torch.from_numpy(voice.prompt_token)[None].to(device, torch.int64),
        mel=torch.from_numpy(voice.prompt_mel)[None].to(device),
        embedding=torch.from_numpy(voice.embedding)[None].to(device),
    )
