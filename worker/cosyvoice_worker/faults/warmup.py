"""A model whose warm-up nobody waits for to end. It fits together in every way, and is no more than very slow.

What a warm-up speaks has a fixed length, so no weights can draw it out. But the length is told in seconds, and the yaml
says how many speech tokens a second has; and how many layers compute each token is for the tensors' names to say, of
which any number may share their numbers. No memory is needed for it but that of the attention.
"""

from __future__ import annotations

import json
import re

from cosyvoice_worker.faults import tensors
from cosyvoice_worker.faults.copy import Copy
from cosyvoice_worker.faults.fault import Damage
from cosyvoice_worker.faults.files import LLM
from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.staging.selection import SERVED_YAML, TEXT_MODEL

# 3,600 tokens a second instead of 25: 3,600 runs of the language model for a warm-up of one second.
TIMES_AS_MANY_TOKENS = 144
# Instead of 24: with the tokens, hours on a CPU.
LAYERS = 300

CONFIG = f"{TEXT_MODEL}/config.json"
LAYER_COUNT = "num_hidden_layers"
FIRST_LAYER = "llm.model.model.layers.0."
# Their ratio, samples a token, is what the vocoder's tensors tell.
RATES = ("sample_rate", "token_frame_rate")


def warm_up_endlessly(copy: Copy) -> Damage:
    """Far more tokens a second than there are, and each computed by far more layers."""
    _raise_rates(copy)
    _repeat_the_first_layer(copy)
    what = f"{LAYERS} layers instead of those it had, for {TIMES_AS_MANY_TOKENS} times as many tokens a second"
    needs = "spec.engine.warmUp.maxSeconds between 0.3 and 2, or unset, which is 1"
    return Damage(file=LLM, what=f"{what}, as {SERVED_YAML} and {CONFIG} now say too", needs=needs)


def _raise_rates(copy: Copy) -> None:
    text = copy.original(SERVED_YAML).real.read_text(encoding="utf-8")
    for name in RATES:
        text, count = re.subn(rf"(?m)^({name}: *)(\d+)", _times, text)
        if count != 1:
            raise _unfit(SERVED_YAML, f"one whole number {name}", f"{count} of them")
    copy.new(SERVED_YAML).write_text(text, encoding="utf-8")


def _times(found: re.Match[str]) -> str:
    return f"{found[1]}{int(found[2]) * TIMES_AS_MANY_TOKENS}"


def _repeat_the_first_layer(copy: Copy) -> None:
    import torch  # noqa: PLC0415 - a command line has to be wrong without it

    state = tensors.read(copy, LLM)
    first = {name.removeprefix(FIRST_LAYER): state[name] for name in state if name.startswith(FIRST_LAYER)}
    if not first:
        raise _unfit(LLM, f"tensors {FIRST_LAYER}*", "none")
    for layer in range(LAYERS):
        for name, tensor in first.items():
            state.setdefault(FIRST_LAYER.replace(".0.", f".{layer}.") + name, tensor)
    torch.save(state, copy.new(LLM))  # what tensors share is written once
    config = json.loads(copy.original(CONFIG).real.read_text(encoding="utf-8"))
    config[LAYER_COUNT] = LAYERS
    copy.new(CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")


def _unfit(file: str, expected: str, actual: str) -> WorkerError:
    message = f"{file} has {actual}, not {expected}: is it a good CosyVoice2 model?"
    return fail(Reason.INCOMPATIBLE_MODEL, Phase.BUILD, message, file=file, expected=expected, actual=actual)
