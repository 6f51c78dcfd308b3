"""Which device and precision to run with, and when the CPU may stand in for a GPU."""

from __future__ import annotations

import logging

import torch

from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.settings import Engine

log = logging.getLogger(__name__)


def choose(engine: Engine) -> tuple[str, str]:
    """Device and dtype by name. Raises WorkerError where there is no CUDA and `fallbackToCPU` is off.

    InvalidConfig: this image can never do it. EngineDied (retryable): the driver or the GPU of this node does not work.
    """
    if engine.device == "cpu":
        return engine.device, engine.dtype
    problem = cuda_problem()
    if problem is None:
        return engine.device, engine.dtype
    if engine.fallback_to_cpu:
        log.warning("no CUDA, falling back to the CPU", extra={"problem": problem})
        return "cpu", "auto" if engine.dtype == "float16" else engine.dtype
    advice = "set spec.engine.device to cpu, or spec.engine.fallbackToCPU to true"
    raise fail(
        Reason.ENGINE_DIED if torch.version.cuda else Reason.INVALID_CONFIG,
        Phase.MAP,
        f"spec.engine.device is cuda, but {problem}; {advice}",
        expected="cuda",
        actual=problem,
    )


def cuda_problem() -> str | None:
    """Why CUDA cannot be initialised in this process; None if it can, and is."""
    if torch.version.cuda is None:
        return f"this image's PyTorch {torch.__version__} is built without CUDA"
    try:
        torch.zeros(1, device="cuda")
    except (RuntimeError, AssertionError) as error:
        return f"CUDA cannot be initialised: {str(error).splitlines()[0]}"
    return None
