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
from cosyvoice_worker.voices.registry import VoiceRegistry
from cosyvoice_worker.voices.voice import BUILT_IN, Voice, built_in, from_pack

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One utterance of the warm-up and how many samples it has to give."""

    text: str
    utterance: Utterance
    tokens: int
    samples: int

    def __str__(self) -> str:
        voice = self.utterance.voice.name
        spoken_by = "the built-in voice" if voice == BUILT_IN else f"voice {voice!r}"
        return f"{self.text!r} with {spoken_by}, {'streaming' if self.utterance.stream else 'not streaming'}"


def choose_voice(wanted: str | None, voices: VoiceRegistry) -> Voice:
    """The voice asked for, else the first pack, else the built-in one, so that no pod waits for a user's voice.

    Raises UnknownVoiceError, or VoiceError where the pack asked for is broken.
    """
    name = wanted or next(iter(voices.names()), None)
    return built_in() if name is None else from_pack(name, voices.read(name))


def warm_up(
    model: CosyVoice2, tokenizer: Tokenizer, settings: WarmUp, voice: Voice, on_step: Callable[[], None]
) -> None:
    """Speak every text of `settings`, whole and streaming, and check what comes out.

    Raises WorkerError of phase WarmUp that names text and voice: NonFiniteAudio, SilentAudio (not with the built-in
    voice, which is nobody's), OutOfMemory, and WarmUpFailed for a wrong length and for any other exception.
    """
    for trial in _trials(model, tokenizer, settings, voice):
        try:
            samples = _speak(model, tokenizer, trial, on_step)
            _check(samples, trial)
        except WorkerError as error:
            raise _of_trial(error.outcome, trial) from error
        except Exception as error:
            reason = Reason.OUT_OF_MEMORY if is_out_of_memory(error) else Reason.WARM_UP_FAILED
            what = f"{type(error).__name__}: {error}"
            raise _of_trial(Outcome(reason=reason, phase=Phase.WARM_UP, message=what), trial) from error
        log.info("warmed up", extra={"trial": str(trial), "samples": samples.size})


def _trials(model: CosyVoice2, tokenizer: Tokenizer, settings: WarmUp, voice: Voice) -> list[Trial]:
    samples_per_token = model.config.sample_rate // model.config.token_rate
    first_chunk = next(chunk_ends(voice.prompt_token.size))
    whole = max(1, int(settings.max_seconds * model.config.token_rate))
    overlap = OVERLAP_FRAMES * model.hift.hop
    trials = []
    for text in settings.texts:
        for stream in (False, True):
            # One token beyond what the chunk needs: the stream has then not ended, so the chunk is not the last one.
            tokens = first_chunk + model.flow.lookahead + 1 if stream else whole
            samples = first_chunk * samples_per_token - overlap if stream else whole * samples_per_token
            utterance = prepare(SpeechRequest(text=text, voice=voice, stream=stream, seed=SEED), tokenizer)
            trials.append(Trial(text=text, utterance=_lasting(utterance, tokens), tokens=tokens, samples=samples))
    return trials


def _lasting(utterance: Utterance, tokens: int) -> Utterance:
    """The first piece alone, said as often as the language model needs to be allowed `tokens` tokens."""
    piece = utterance.pieces[0]
    times = math.ceil(tokens / (MAX_TOKENS_PER_TEXT_TOKEN * len(piece)))
    return replace(utterance, pieces=(piece * times,))


def _speak(model: CosyVoice2, tokenizer: Tokenizer, trial: Trial, on_step: Callable[[], None]) -> Samples:
    """The first chunk, which is all of it unless streaming."""

    def randomness(seed: int) -> Randomness:
        generator = torch.Generator().manual_seed(seed)
        sampling = RepetitionAwareSampling(model.config.sampling, drawing(generator))
        return Randomness(FixedLength(sampling, trial.tokens, model.lm.end_of_speech), GeneratorNoise(generator))

    return next(Synthesizer(model, tokenizer, randomness).speak(trial.utterance, on_step))


def _check(samples: Samples, trial: Trial) -> None:
    """Finite is what the synthesis itself sees to."""
    if samples.size != trial.samples:
        raise _failure(
            Reason.WARM_UP_FAILED, "the audio has the wrong length", f"{trial.samples} samples", samples.size
        )
    peak = float(np.abs(samples).max())
    if trial.utterance.voice.name != BUILT_IN and peak < SILENCE:
        raise _failure(Reason.SILENT_AUDIO, "the audio is silent", f"a peak of at least {SILENCE}", peak)


def _failure(reason: Reason, message: str, expected: str, actual: object) -> WorkerError:
    return WorkerError(
        Outcome(reason=reason, phase=Phase.WARM_UP, message=message, expected=expected, actual=str(actual))
    )


def _of_trial(outcome: Outcome, trial: Trial) -> WorkerError:
    return WorkerError(replace(outcome, phase=Phase.WARM_UP, message=f"warm-up of {trial}: {outcome.message}"))
