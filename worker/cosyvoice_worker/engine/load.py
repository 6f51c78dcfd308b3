"""Loading: from a staged directory to a model that has spoken."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from cosyvoice_worker.channel import EngineMessage
from cosyvoice_worker.engine import working_set
from cosyvoice_worker.engine.bound import MemoryBound
from cosyvoice_worker.engine.choice import choose_voice
from cosyvoice_worker.engine.devices import choose
from cosyvoice_worker.engine.environment import settle
from cosyvoice_worker.engine.job import Steps
from cosyvoice_worker.engine.limits import threads
from cosyvoice_worker.engine.phases import Phases
from cosyvoice_worker.engine.refusals import is_out_of_memory
from cosyvoice_worker.engine.synthesis import Synthesizer
from cosyvoice_worker.engine.warmup import warm_up
from cosyvoice_worker.models.cosyvoice2 import load as cosyvoice2
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.settings import Engine as Settings
from cosyvoice_worker.voices.registry import VoiceRegistry, model_voices

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A model that is ready to speak. `slowest_step` is in seconds, of the warm-up; `bound` is None on a GPU."""

    synthesizer: Synthesizer
    voices: VoiceRegistry
    sample_rate: int
    device: str
    dtype: str
    slowest_step: float
    bound: MemoryBound | None


def load(
    settings: Settings,
    directory: Path,
    voices: Path,
    phases: Phases,
    send: Callable[[EngineMessage], None],
    *,
    memory_bytes: int | None = None,
    memory_high: int | None = None,
) -> Engine:
    """Map, build and warm up the model staged in `directory`; `voices` holds packs beside the model's own.

    `memory_bytes` is what a second engine may hold for itself, None what the only one may; `memory_high` is where the
    kernel slows this container down.
    Raises WorkerError whatever goes wrong: an allocation that is refused is OutOfMemory, an exception that nobody
    foresaw EngineDied, both with the phase they happened in.
    """
    try:
        return _load(settings, directory, voices, phases, send, memory_bytes=memory_bytes, memory_high=memory_high)
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
    settings: Settings,
    directory: Path,
    voices: Path,
    phases: Phases,
    send: Callable[[EngineMessage], None],
    *,
    memory_bytes: int | None,
    memory_high: int | None,
) -> Engine:
    torch.set_num_threads(threads())
    phases.enter(Phase.MAP)
    device, dtype = choose(settings)
    bound = None
    if device == "cpu":
        _start_threads()
        bound = MemoryBound(_bytes_of(directory), memory_bytes)
        bound.while_mapping()
    enough = partial(working_set.check, memory_high)
    model = cosyvoice2.load(directory, device, dtype, phases.enter, enough)
    tokenizer = cosyvoice2.make_tokenizer(directory)
    if bound is not None:
        bound.once_built()
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
        bound=bound,
    )


def _bytes_of(directory: Path) -> int:
    """Of the weights; what is not there is told when it is read."""
    files = [directory / name for name in cosyvoice2.FILES]
    return sum(file.stat().st_size for file in files if file.exists())


def _start_threads() -> None:
    """By work large enough to be divided: the compute threads' stacks and BLAS's buffers then do not count as growth.

    OpenBLAS takes its buffer at the first product, and where that is refused it asks again for ever.
    """
    torch.ones(1 << 20).sum()
    square = torch.ones(512, 512)
    torch.mm(square, square)
