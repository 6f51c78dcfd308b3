"""What is to be spoken, as the model takes it: text ids, prompts, and how they are combined. No torch.

The three ways CosyVoice2 takes a voice:

zero-shot        a recording with its transcript: the language model goes on from both
cross-lingual    a recording alone: it only colours the sound, the language model never hears it
instruct         a recording and an instruction in words: the instruction takes the transcript's place
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cosyvoice_worker.engine.errors import RequestError
from cosyvoice_worker.text.frontend import normalize, split
from cosyvoice_worker.voices.voice import Voice

INSTRUCTION_END = "<|endofprompt|>"

# What a server takes too: beyond it hours or nothing would come out.
SLOWEST, FASTEST = 0.25, 4.0


class Tokenizer(Protocol):
    """Text to the language model's ids."""

    def encode(self, text: str) -> list[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechRequest:
    """One request to speak. `speed` above 1 is faster and needs `stream` False; `seed` decides every random choice."""

    text: str
    voice: Voice
    stream: bool = False
    seed: int = 0
    speed: float = 1.0
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A request in ids. Each piece is spoken on its own, after the same prompt."""

    pieces: tuple[tuple[int, ...], ...]
    prompt_text: tuple[int, ...]  # transcript or instruction
    prompt_token: tuple[int, ...]  # speech tokens the language model goes on from
    voice: Voice  # what the flow gets, in every way of speaking
    stream: bool
    seed: int
    speed: float


def prepare(request: SpeechRequest, tokenizer: Tokenizer) -> Utterance:
    """Split and encode a request. Raises RequestError where nothing can be spoken or two wishes exclude each other."""
    if request.stream and request.speed != 1.0:
        message = f"speed {request.speed:g} cannot be streamed: leave it at 1 or do not stream"
        raise RequestError(message, expected="speed 1 or no stream", actual=f"speed {request.speed:g}")
    if not SLOWEST <= request.speed <= FASTEST:  # NaN is neither
        between = f"{SLOWEST:g} to {FASTEST:g}"
        raise RequestError(f"speed {request.speed:g} is not {between}", expected=between, actual=request.speed)
    pieces = split(request.text, tokenizer)
    if not pieces:
        raise RequestError("the text has no letter or digit: there is nothing to speak")
    prompt_text, prompt_token = _language_model_prompt(request, tokenizer)
    return Utterance(
        pieces=tuple(tuple(tokenizer.encode(piece)) for piece in pieces),
        prompt_text=prompt_text,
        prompt_token=prompt_token,
        voice=request.voice,
        stream=request.stream,
        seed=request.seed,
        speed=request.speed,
    )


def _language_model_prompt(request: SpeechRequest, tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    voice = request.voice
    if request.instructions:
        instruction = request.instructions.removesuffix(INSTRUCTION_END) + INSTRUCTION_END
        return tuple(tokenizer.encode(instruction)), ()
    if voice.prompt_text and voice.prompt_token.size:
        return tuple(tokenizer.encode(normalize(voice.prompt_text))), tuple(voice.prompt_token.tolist())
    return (), ()
