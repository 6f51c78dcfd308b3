"""A CosyVoice2 model directory of 57 MB with the published layout and tensor names, the same values everywhere.

Every tensor is drawn from a stream of its own (`dev.models.streams`), so that changing one leaves the others alone, and
the results recorded under tests/engine/goldens stay valid. It speaks nonsense, but computes all the real one does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from dev.models import streams
from dev.models.vocabulary import write_vocabulary

RECIPE = Path(__file__).parent / "cosyvoice2"
TOKENIZER_DIR = "CosyVoice-BlankEN"
FIRST_TAKE = "v2"  # part of every stream's tag, and so of every value
OTHER_TAKES = ("other", "third")
_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def write(path: Path, *, take: str = FIRST_TAKE) -> Path:
    """Write the tiny model into `path` (made if absent) and return it. Takes one to three seconds.

    Another `take` has other values everywhere, so that it is heard which of two versions spoke.
    """
    shutil.copytree(RECIPE / "side", path, dirs_exist_ok=True)
    recipe = json.loads((RECIPE / "keys.json").read_text(encoding="utf-8"))
    for file, specs in recipe.items():
        write_tensors(tensors(file, specs, take), path / file)
    write_vocabulary(path / TOKENIZER_DIR)
    return path


def tensors(file: str, specs: Mapping[str, Mapping[str, Any]], take: str = FIRST_TAKE) -> dict[str, torch.Tensor]:
    """The tensors that the recipe of `file` describes; an alias shares its original's storage, as published."""
    made: dict[str, torch.Tensor] = {}
    for name, spec in specs.items():
        original = spec["init"].get("alias")
        made[name] = made[original] if original else draw(f"{take}/{file}/{name}", spec)
    return made


def draw(tag: str, spec: Mapping[str, Any]) -> torch.Tensor:
    """One tensor: Gaussian by `mean` and `std`, or positive (`abs`), with runs of `rows` scaled by a factor."""
    init = spec["init"]
    values = init["mean"] + init["std"] * streams.normal(tag, tuple(spec["shape"]))
    if init.get("abs"):
        values = np.abs(values) + 0.05
    for first, last, factor in init.get("rows", ()):
        values[first:last] *= factor
    return torch.from_numpy(values.astype(np.float32)).to(_DTYPES[spec["dtype"]])


def write_tensors(state: dict[str, torch.Tensor], path: Path) -> None:
    """Save as the file name asks: safetensors or PyTorch's own format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".safetensors":
        save_file(state, path, metadata={"format": "pt"})
    else:
        torch.save(state, path)
