"""The two ways to load a model that the benchmarks compare.

Each is called with the model's directory and gives the function that loads; what it does before that is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from cosyvoice_worker.models.cosyvoice2 import config as configuration
from cosyvoice_worker.models.cosyvoice2.crosscheck import Sizes
from cosyvoice_worker.models.cosyvoice2.flow import build_flow, flow_sizes
from cosyvoice_worker.models.cosyvoice2.hift import build_hift, hift_sizes
from cosyvoice_worker.models.cosyvoice2.lm import FILE as LM_FILE
from cosyvoice_worker.models.cosyvoice2.lm import UNUSED_TENSOR, build_speech_lm, speech_lm_sizes
from cosyvoice_worker.models.cosyvoice2.load import FILES, FLOW_FILE, HIFT_FILE, build
from cosyvoice_worker.weights import checkpoint, memory
from cosyvoice_worker.weights.device import place

CPU = torch.device("cpu")
# How the published vocoder names length and direction of a weight-normed convolution.
LENGTH, DIRECTION = ".parametrizations.weight.original0", ".parametrizations.weight.original1"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The modules, alive as long as this is, and the seconds of their loading.

    `touch` is not part of `load`; `cpu` is the processor time of both, which a busy machine stretches less.
    """

    modules: tuple[nn.Module, ...]
    load: float
    cpu: float
    touch: float = 0.0


def mapped(directory: Path) -> Callable[[], Loaded]:
    """As the engine does: the steps of `cosyvoice2.load.load` in its order."""

    def load() -> Loaded:
        paths = [directory / file for file in FILES]
        start, cpu = time.perf_counter(), time.process_time()
        config = configuration.read(directory)
        states = {path.name: checkpoint.read(path) for path in paths}
        memory.protect(paths)
        opened = time.perf_counter()
        memory.populate(paths)
        touched = time.perf_counter()
        model = build(states, config, CPU, torch.float32)
        modules = (model.lm, model.flow, model.hift)
        for module in modules:
            place(module, CPU, torch.float32)
        end = time.perf_counter()
        cpu = time.process_time() - cpu
        return Loaded(modules, load=(opened - start) + (end - touched), cpu=cpu, touch=touched - opened)

    return load


def copying(directory: Path) -> Callable[[], Loaded]:
    """As is usual: modules with initial values of their own, then each file read and copied into them.

    The sizes come from a yaml there, so reading them is not counted. The vocoder keeps its weight norm, so this way
    does not pay for the fold.
    """
    config, sizes, normed = configuration.read(directory), _sizes(directory), _normed(directory)

    def load() -> Loaded:
        start, cpu = time.perf_counter(), time.process_time()
        lm = build_speech_lm(sizes.lm, config.backbone).eval()
        flow = build_flow(sizes.flow, config.flow).eval()
        hift = build_hift(sizes.hift, config.hift).eval()
        for name in normed:
            weight_norm(hift.get_submodule(name))
        for module, file in ((lm, LM_FILE), (flow, FLOW_FILE), (hift, HIFT_FILE)):
            _copy(module, directory / file)
        return Loaded((lm, flow, hift), load=time.perf_counter() - start, cpu=time.process_time() - cpu)

    return load


WAYS: Mapping[str, Callable[[Path], Callable[[], Loaded]]] = {"mapped": mapped, "copying": copying}


def _copy(module: nn.Module, path: Path) -> None:
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    state.pop(UNUSED_TENSOR, None)
    module.load_state_dict(state)


def _sizes(directory: Path) -> Sizes:
    """From the tensors' shapes; the mappings are gone when it returns."""
    states = {file: checkpoint.read(directory / file) for file in FILES}
    states[LM_FILE].pop(UNUSED_TENSOR, None)
    hift = {name.replace(DIRECTION, ".weight"): tensor for name, tensor in states[HIFT_FILE].items()}
    return Sizes(lm=speech_lm_sizes(states[LM_FILE]), flow=flow_sizes(states[FLOW_FILE]), hift=hift_sizes(hift))


def _normed(directory: Path) -> list[str]:
    names = checkpoint.read(directory / HIFT_FILE)
    return [name.removesuffix(LENGTH) for name in names if name.endswith(LENGTH)]
