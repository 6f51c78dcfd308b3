"""The warm-up: the real pipeline speaks before the pod is ready, and what it says is looked at.

Each text is spoken twice: whole, and as a stream up to its first chunk that is not the last. Both are of a length that
is fixed beforehand, so a warm-up costs the same whatever the model would like to say.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cosyvoice_worker.engine.refusals import is_out_of_memory
from cosyvoice_worker.engine.synthesis import Randomness, Synthesizer
from cosyvoice_worker.engine.utterance import SpeechRequest, Tokenizer, Utterance, prepare
from cosyvoice_worker.models.cosyvoice2.lm import MAX_TOKENS_PER_TEXT_TOKEN, Sampling
from cosyvoice_worker.models.cosyvoice2.model import CosyVoice2
from cosyvoice_worker.models.cosyvoice2.sampling import RepetitionAwareSampling, drawing
from cosyvoice_worker.models.cosyvoice2.source import GeneratorNoise
from cosyvoice_worker.models.cosyvoice2.token2wav import OVERLAP_FRAMES, Samples, chunk_ends
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.settings import WarmUp
from cosyvoice_worker.voices.voice import BUILT_IN, Voice

SEED = 0
# Of full scale: 60 dB below it nothing is heard.
SILENCE = 1e-3

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FixedLength:
    """A sampling that neither ends before `tokens` tokens nor goes on after them."""

    inner: Sampling
    tokens: int
    end: int  # the first of the ids that end speech

    def __call__(self, scores: Tensor, decoded: Sequence[int]) -> int:
        if len(decoded) >= self.tokens:
            return self.end
        scores = scores.clone()
        scores[self.end :] = -torch.inf
        return self.inner(scores, decoded)


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing to say, in one way."""

    text: str
    voice: Voice
    stream: bool

    def __str__(self) -> str:
        voice = "the built-in voice" if self.voice.name == BUILT_IN else f"voice {self.voice.name!r}"
        return f"{self.text!r} with {voice}, {'streaming' if self.stream else 'not streaming'}"


def warm_up(
    model: CosyVoice2, tokenizer: Tokenizer, settings: WarmUp, voice: Voice, on_step: Callable[[], None]
) -> None:
    """Speak every text of `settings`, whole and streaming, and check what comes out.

    Raises WorkerError of phase WarmUp that names text and voice: NonFiniteAudio, SilentAudio (not with the built-in
    voice, which is nobody's), OutOfMemory, and WarmUpFailed for a wrong length and for any other exception.
    """
    for trial in [Trial(text, voice, stream) for text in settings.texts for stream in (False, True)]:
        try:
            samples = _try(model, tokenizer, trial, settings.max_seconds, on_step)
        except WorkerError as error:
            raise _of_trial(error.outcome, trial) from error
        except Exception as error:
            reason = Reason.OUT_OF_MEMORY if is_out_of_memory(error) else Reason.WARM_UP_FAILED
            what = f"{type(error).__name__}: {error}"
            raise _of_trial(Outcome(reason=reason, phase=Phase.WARM_UP, message=what), trial) from error
        log.info("warmed up", extra={"trial": str(trial), "samples": samples})


def _try(model: CosyVoice2, tokenizer: Tokenizer, trial: Trial, max_seconds: float, on_step: Callable[[], None]) -> int:
    """Say it, check it, and how many samples it gave."""
    request = SpeechRequest(text=trial.text, voice=trial.voice, stream=trial.stream, seed=SEED)
    utterance = prepare(request, tokenizer)
    samples_per_token = model.config.sample_rate // model.config.token_rate
    if trial.stream:
        spoken = next(chunk_ends(trial.voice.prompt_token.size))
        expected = spoken * samples_per_token - OVERLAP_FRAMES * model.hift.hop
        # One token beyond what the chunk needs: the stream has then not ended, so the chunk is not the last one.
        tokens = spoken + model.flow.lookahead + 1
    else:
        tokens = max(1, int(max_seconds * model.config.token_rate))
        expected = tokens * samples_per_token
    samples = _first_chunk(model, tokenizer, _lasting(utterance, tokens), tokens, on_step)
    _check(samples, expected, audible=trial.voice.name != BUILT_IN)
    return samples.size


def _lasting(utterance: Utterance, tokens: int) -> Utterance:
    """The first piece alone, said as often as the language model needs to be allowed `tokens` tokens."""
    piece = utterance.pieces[0]
    times = math.ceil(tokens / (MAX_TOKENS_PER_TEXT_TOKEN * len(piece)))
    return replace(utterance, pieces=(piece * times,))


def _first_chunk(
    model: CosyVoice2, tokenizer: Tokenizer, utterance: Utterance, tokens: int, on_step: Callable[[], None]
) -> Samples:
    """Of `tokens` speech tokens; it is all of them unless streaming."""

    def randomness(seed: int) -> Randomness:
        generator = torch.Generator().manual_seed(seed)
        sampling = RepetitionAwareSampling(model.config.sampling, drawing(generator))
        return Randomness(FixedLength(sampling, tokens, model.lm.end_of_speech), GeneratorNoise(generator))

    return next(Synthesizer(model, tokenizer, randomness).speak(utterance, on_step))


def _check(samples: Samples, expected: int, *, audible: bool) -> None:
    """Finite is what the synthesis itself sees to."""
    if samples.size != expected:
        raise _failure(Reason.WARM_UP_FAILED, "the audio has the wrong length", f"{expected} samples", samples.size)
    peak = float(np.abs(samples).max())
    if audible and peak < SILENCE:
        raise _failure(Reason.SILENT_AUDIO, "the audio is silent", f"a peak of at least {SILENCE}", peak)


def _failure(reason: Reason, message: str, expected: str, actual: object) -> WorkerError:
    return WorkerError(
        Outcome(reason=reason, phase=Phase.WARM_UP, message=message, expected=expected, actual=str(actual))
    )


def _of_trial(outcome: Outcome, trial: Trial) -> WorkerError:
    return WorkerError(replace(outcome, phase=Phase.WARM_UP, message=f"warm-up of {trial}: {outcome.message}"))
