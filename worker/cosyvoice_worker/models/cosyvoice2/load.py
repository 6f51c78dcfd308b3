"""A model directory becomes a CosyVoice2: map its files, check them, give hollow modules the mapped weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from cosyvoice_worker.models.cosyvoice2 import config as configuration
from cosyvoice_worker.models.cosyvoice2.crosscheck import Sizes, check
from cosyvoice_worker.models.cosyvoice2.flow import build_flow, flow_sizes
from cosyvoice_worker.models.cosyvoice2.hift import build_hift, hift_sizes
from cosyvoice_worker.models.cosyvoice2.lm import FILE as LM_FILE
from cosyvoice_worker.models.cosyvoice2.lm import UNUSED_TENSOR, build_speech_lm, speech_lm_sizes
from cosyvoice_worker.models.cosyvoice2.model import CosyVoice2
from cosyvoice_worker.outcome import Phase
from cosyvoice_worker.text.tokenizer import Tokenizer
from cosyvoice_worker.weights import checkpoint, memory
from cosyvoice_worker.weights.assign import assign
from cosyvoice_worker.weights.build import hollow
from cosyvoice_worker.weights.device import choose_dtype, place
from cosyvoice_worker.weights.fold import fold_weight_norm, strip_prefix
from cosyvoice_worker.weights.private import cast_bytes, folded_bytes

FLOW_FILE = "flow.pt"
HIFT_FILE = "hift.pt"
FILES = (LM_FILE, FLOW_FILE, HIFT_FILE)
# Training wraps the vocoder; its checkpoints may carry the wrapper's name.
HIFT_PREFIX = "generator."

State = Mapping[str, Tensor]


def load(
    model_dir: Path,
    device: str,
    dtype: str,
    on_phase: Callable[[Phase], None],
    on_private: Callable[[int], None] = lambda _: None,
) -> CosyVoice2:
    """The model of `model_dir` on `device` ("cpu", "cuda"), the arithmetic of lm and flow in `dtype` (or "auto").

    On the CPU, in float32, the weights stay in the files' pages: read-only, resident, shared with every process that
    maps them. `on_phase` is told when Map and when Build begins, `on_private` how many bytes the model will hold
    for itself (on the CPU), before it does; what that raises ends the load.

    Raises WorkerError of phase Map (files that are missing, damaged, of another version, or that contradict each other)
    or Build (tensors that do not fit), always naming the file, and the tensor if there is one.
    """
    on_phase(Phase.MAP)
    chosen = torch.device(device)
    precision = choose_dtype(dtype, chosen)
    config = configuration.read(model_dir)
    states = {file: checkpoint.read(model_dir / file) for file in FILES}
    paths = [model_dir / file for file in FILES]
    memory.protect(paths)
    if chosen.type == "cpu":
        on_private(_private_bytes(states, precision))
        memory.populate(paths)

    on_phase(Phase.BUILD)
    model = build(states, config, chosen, precision)
    place(model.lm, chosen, precision)
    place(model.flow, chosen, torch.float32)  # autocast narrows it where that is safe
    place(model.hift, chosen, torch.float32)
    return model


def build(
    states: Mapping[str, State], config: configuration.CosyVoice2Config, device: torch.device, dtype: torch.dtype
) -> CosyVoice2:
    """The model of the three files' tensors, still where they are; `device` and `dtype` are where it will compute."""
    lm_state = {name: tensor for name, tensor in states[LM_FILE].items() if name != UNUSED_TENSOR}
    flow_state = states[FLOW_FILE]
    hift_state = fold_weight_norm(strip_prefix(states[HIFT_FILE], HIFT_PREFIX), HIFT_FILE)
    sizes = Sizes(lm=speech_lm_sizes(lm_state), flow=flow_sizes(flow_state), hift=hift_sizes(hift_state))
    check(config, sizes)
    model = CosyVoice2(
        lm=hollow(lambda: build_speech_lm(sizes.lm, config.backbone)),
        flow=hollow(lambda: build_flow(sizes.flow, config.flow)),
        hift=hollow(lambda: build_hift(sizes.hift, config.hift)),
        config=config,
        device=device,
        dtype=dtype,
    )
    assign(model.lm, lm_state, LM_FILE)
    assign(model.flow, flow_state, FLOW_FILE)
    assign(model.hift, hift_state, HIFT_FILE)
    return model


def _private_bytes(states: Mapping[str, State], precision: torch.dtype) -> int:
    """On the CPU: what is cast, and what is folded. All else stays in the files' pages."""
    lm = {name: tensor for name, tensor in states[LM_FILE].items() if name != UNUSED_TENSOR}
    others = cast_bytes(states[FLOW_FILE], torch.float32) + cast_bytes(states[HIFT_FILE], torch.float32)
    return cast_bytes(lm, precision) + others + folded_bytes(states[HIFT_FILE])


def make_tokenizer(model_dir: Path) -> Tokenizer:
    """The tokenizer of the model in `model_dir`; raises WorkerError where its files are missing or damaged."""
    return Tokenizer.from_directory(model_dir / configuration.TOKENIZER_DIR)
