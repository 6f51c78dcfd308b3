"""Loading: from a staged directory to a model that has spoken."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from cosyvoice_worker.channel import EngineMessage
from cosyvoice_worker.engine.choice import choose_voice
from cosyvoice_worker.engine.devices import choose
from cosyvoice_worker.engine.environment import settle
from cosyvoice_worker.engine.job import Steps
from cosyvoice_worker.engine.limits import memory_budget, threads
from cosyvoice_worker.engine.phases import Phases
from cosyvoice_worker.engine.refusals import is_out_of_memory
from cosyvoice_worker.engine.synthesis import Synthesizer
from cosyvoice_worker.engine.warmup import warm_up
from cosyvoice_worker.models.cosyvoice2 import load as cosyvoice2
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.settings import Engine as Settings
from cosyvoice_worker.voices.registry import VoiceRegistry, model_voices
from cosyvoice_worker.weights.memory import limit_growth

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A model that is ready to speak. `slowest_step` is in seconds, of the warm-up."""

    synthesizer: Synthesizer
    voices: VoiceRegistry
    sample_rate: int
    device: str
    dtype: str
    slowest_step: float


def load(
    settings: Settings, directory: Path, voices: Path, phases: Phases, send: Callable[[EngineMessage], None]
) -> Engine:
    """Map, build and warm up the model staged in `directory`; `voices` holds packs beside the model's own.

    Raises WorkerError whatever goes wrong: an allocation that is refused is OutOfMemory, an exception that nobody
    foresaw EngineDied, both with the phase they happened in.
    """
    try:
        return _load(settings, directory, voices, phases, send)
    except WorkerError:
        raise
    except Exception as error:
        phase, what = phases.outcome_phase, f"{type(error).__name__}: {error}"
        if is_out_of_memory(error):
            message = f"out of memory in phase {phase}: {what}; raise the memory limit of the worker container"
            raise WorkerError(Outcome(reason=Reason.OUT_OF_MEMORY, phase=phase, message=message)) from error
        log.exception("loading failed")
        raise WorkerError(Outcome(reason=Reason.ENGINE_DIED, phase=phase, message=what)) from error


def _load(
    settings: Settings, directory: Path, voices: Path, phases: Phases, send: Callable[[EngineMessage], None]
) -> Engine:
    torch.set_num_threads(threads())
    phases.enter(Phase.MAP)
    device, dtype = choose(settings)
    model = cosyvoice2.load(directory, device, dtype, phases.enter)
    tokenizer = cosyvoice2.make_tokenizer(directory)
    if model.device.type == "cpu":
        _start_threads()
        weights = sum((directory / name).stat().st_size for name in cosyvoice2.FILES)
        limit_growth(memory_budget(weights))
    settle()

    phases.enter(Phase.WARM_UP)
    registry = model_voices(directory, voices)
    steps = Steps(0, send)
    voice = choose_voice(settings.warm_up.voice, registry)
    warm_up(model, tokenizer, settings.warm_up, voice, steps)
    return Engine(
        synthesizer=Synthesizer(model, tokenizer),
        voices=registry,
        sample_rate=model.config.sample_rate,
        device=model.device.type,
        dtype=str(model.dtype).removeprefix("torch."),
        slowest_step=steps.slowest,
    )


def _start_threads() -> None:
    """By work large enough to be divided: the compute threads' stacks and BLAS's buffers then do not count as growth.

    OpenBLAS takes its buffer at the first product, and where that is refused it asks again for ever.
    """
    torch.ones(1 << 20).sum()
    square = torch.ones(512, 512)
    torch.mm(square, square)
