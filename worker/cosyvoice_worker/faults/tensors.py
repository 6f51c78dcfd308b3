"""Faults in the weights: the stager finds nothing wrong with the files, the engine does with what is in them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from cosyvoice_worker.faults.copy import Copy
from cosyvoice_worker.faults.fault import Damage
from cosyvoice_worker.faults.files import FLOW, HIFT, LLM
from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.staging.selection import VOICES
from cosyvoice_worker.voices import files, limits
from cosyvoice_worker.voices.pack import Pack

if TYPE_CHECKING:
    from torch import Tensor

    State = dict[str, Tensor]

NORM = "encoder.after_norm.weight"
EMBEDDING = "llm_embedding.weight"
OUTPUT_BIAS = "conv_post.bias"
STRANGER = "stranger.weight"

# The vocoder gives the logarithm of magnitudes: of this one nothing is left in float32.
LOG_SILENCE = -1000.0

VOICE = "rehearsal"


def remove_a_tensor(copy: Copy) -> Damage:
    """Weights of an older model than the code's."""
    return _edit(copy, FLOW, NORM, lambda state, name: state.pop(name), "removed")


def add_a_tensor(copy: Copy) -> Damage:
    """Weights of a newer model than the code's."""
    import torch  # noqa: PLC0415 - a command line has to be wrong without it

    state = read(copy, HIFT)
    state[STRANGER] = torch.zeros(3)
    torch.save(state, copy.new(HIFT))
    return Damage(file=HIFT, tensor=STRANGER, what="added")


def narrow_a_tensor(copy: Copy) -> Damage:
    """Weights of a model of another size."""

    def narrow(state: State, name: str) -> None:
        state[name] = state[name][:, :-1].clone()

    return _edit(copy, LLM, EMBEDDING, narrow, "made one column narrower")


def fill_with_nan(copy: Copy) -> Damage:
    """A training that diverged: everything fits, and what comes out are no numbers."""

    def fill(state: State, name: str) -> None:
        state[name] = state[name].clone().fill_(math.nan)

    return _edit(copy, HIFT, OUTPUT_BIAS, fill, "set to NaN")


def silence(copy: Copy) -> Damage:
    """A vocoder of which nothing is heard. Only a voice with a name is expected to be heard, so there has to be one."""

    def quieten(state: State, name: str) -> None:
        bias = state[name].clone()
        bias[: len(bias) // 2] = LOG_SILENCE  # the other half are phases
        state[name] = bias

    damage = _edit(copy, HIFT, OUTPUT_BIAS, quieten, "set so that every magnitude is 0")
    if any(file.path.startswith(f"{VOICES}/") for file in copy.good):
        return damage
    (copy.directory / VOICES).mkdir()
    files.write(_voice(), copy.directory / VOICES / f"{VOICE}{limits.SUFFIX}")
    return Damage(file=damage.file, tensor=damage.tensor, what=f"{damage.what}; the voice {VOICE} was added")


def read(copy: Copy, file: str) -> State:
    """The tensors of a good checkpoint. Raises WorkerError where it is none."""
    from cosyvoice_worker.weights import checkpoint  # noqa: PLC0415 - torch

    return checkpoint.read(copy.original(file).real)


def _edit(copy: Copy, file: str, tensor: str, change: Callable[[State, str], object], what: str) -> Damage:
    """Change the one tensor whose name is `tensor`, or ends with it."""
    import torch  # noqa: PLC0415

    state = read(copy, file)
    name = next((name for name in state if name == tensor or name.endswith(f".{tensor}")), None)
    if name is None:
        message = f"{file} lacks the tensor {tensor}: is it a good CosyVoice2 model?"
        raise fail(Reason.MISSING_TENSOR, Phase.BUILD, message, file=file, tensor=tensor)
    change(state, name)
    torch.save(state, copy.new(file))
    return Damage(file=file, tensor=name, what=what)


def _voice() -> Pack:
    """A voice of an embedding alone, the same every time; nobody's."""
    embedding = [math.sin(index) for index in range(limits.EMBEDDING_SIZE)]
    return Pack(
        family=limits.COSYVOICE2,
        prompt_text="",
        prompt_token=b"",
        prompt_mel=b"",
        embedding=struct.pack(f"<{limits.EMBEDDING_SIZE}f", *embedding),
        speech_tokenizer_sha256="0" * 64,  # no recording was used
        campplus_sha256="0" * 64,
    )
