"""A random CosyVoice2 directory of the published size (2.4 GiB), to measure with: real shapes, no sense.

The scale of each tensor follows the tiny model's recipe, corrected by its width, so that activations stay in range and
speech comes out that is neither silent nor infinite.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dev.models.tiny import RECIPE, TOKENIZER_DIR, write_tensors
from dev.models.vocabulary import write_vocabulary

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
_LAYER = re.compile(r"\b(layers|encoders|up_encoders|mid_blocks)\.\d+")
_TRANSFORMER_OF_A_BLOCK = re.compile(r"(_blocks\.\d+\.1)\.\d+")


def write(path: Path, *, seed: int = 0) -> Path:
    """Write the full-size model into `path` (made if absent) and return it. Takes about half a minute and 3 GiB."""
    for side in ("side", "full"):
        shutil.copytree(RECIPE / side, path, dirs_exist_ok=True)
    write_vocabulary(path / TOKENIZER_DIR)
    shapes = json.loads((RECIPE / "keys_full.json").read_text(encoding="utf-8"))
    recipe = json.loads((RECIPE / "keys.json").read_text(encoding="utf-8"))
    generator = torch.Generator().manual_seed(seed)
    for file, specs in shapes.items():
        if file.endswith(".pt"):  # the worker never reads the tokenizer folder's own weights
            write_tensors(_tensors(specs, recipe[file], generator), path / file)
    return path


def _tensors(
    specs: Mapping[str, Mapping[str, Any]], recipe: Mapping[str, Mapping[str, Any]], generator: torch.Generator
) -> dict[str, torch.Tensor]:
    made: dict[str, torch.Tensor] = {}
    for name, spec in specs.items():
        if alias := spec.get("alias"):
            made[name] = made[alias]
            continue
        model = recipe[_TRANSFORMER_OF_A_BLOCK.sub(r"\1.0", _LAYER.sub(r"\1.0", name))]
        values = torch.empty(spec["shape"], dtype=_DTYPES[spec["dtype"]])
        _fill(values, model["init"], _width_correction(name, model["shape"], spec["shape"]), generator)
        made[name] = values
    return made


def _fill(values: torch.Tensor, init: Mapping[str, Any], correction: float, generator: torch.Generator) -> None:
    values.normal_(init["mean"], init["std"] * correction, generator=generator)
    if init.get("abs"):
        values.abs_().add_(0.05)
    for first, last, factor in init.get("rows", ()):
        values[first:last] *= factor


def _width_correction(name: str, tiny: list[int], full: list[int]) -> float:
    """Weights shrink with the root of their inputs; vectors and embedding rows keep their scale."""
    if len(tiny) < 2 or "embed_tokens" in name or "embedding" in name or name.endswith("original0"):
        return 1.0
    return math.sqrt(math.prod(tiny[1:]) / math.prod(full[1:]))
