"""Speech tokens to samples: the flow and the vocoder, in one go or chunk by chunk while tokens still arrive.

Streaming: the flow is solved again from the prompt's start for every chunk (its fixed noise and chunked attention make
the common frames agree), the vocoder works on the new frames and the last few before them, and over those one chunk is
faded into the next. Nothing here outlives the piece of text it was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from cosyvoice_worker.models.cosyvoice2.flow import MEL_FRAMES_PER_TOKEN, Prompt
from cosyvoice_worker.models.cosyvoice2.hift import Hift
from cosyvoice_worker.models.cosyvoice2.model import CosyVoice2
from cosyvoice_worker.models.cosyvoice2.source import Noise

Samples = npt.NDArray[np.float32]

FIRST_HOP = 25  # tokens; also the grid of the flow's chunked attention
MAX_HOP = 100
OVERLAP_FRAMES = 8


def chunk_ends(prompt_tokens: int) -> Iterator[int]:
    """How many tokens are spoken after each chunk: hops of 25, 50, then 100.

    The first hop also fills the prompt up to the grid of the chunked attention, which starts at the prompt.
    """
    end, hop = -prompt_tokens % FIRST_HOP, FIRST_HOP
    while True:
        end += hop
        yield end
        hop = min(MAX_HOP, 2 * hop)


@dataclass(frozen=True, slots=True)
class Tail:
    """What the vocoder keeps of a chunk for the next one: its last frames in three forms."""

    mel: Tensor  # (1, 80, OVERLAP_FRAMES)
    source: Tensor  # (1, 1, overlap samples)
    speech: Samples  # (overlap samples), held back, to be faded


class ChunkVocoder:
    """Vocodes a stream's mel chunk by chunk."""

    def __init__(self, hift: Hift, noise: Noise, on_step: Callable[[], None]) -> None:
        self._hift = hift
        self._noise = noise
        self._on_step = on_step
        self._tail: Tail | None = None
        self._overlap = OVERLAP_FRAMES * hift.hop
        # The halves add up to 1.08, not to 1: that is how the model's own streaming sounds.
        window = np.hamming(2 * self._overlap)
        self._rise, self._fall = window[: self._overlap], window[self._overlap :]

    def __call__(self, mel: Tensor, *, final: bool) -> Samples:
        """mel (1, 80, T), new frames only -> samples; unless `final`, the last OVERLAP_FRAMES' worth is held back."""
        tail = self._tail
        if tail is not None:
            mel = torch.cat((tail.mel, mel), dim=2)
        wave, source = self._hift(mel, self._noise, None if tail is None else tail.source, self._on_step)
        speech = to_numpy(wave)
        if tail is not None:
            speech[: self._overlap] = speech[: self._overlap] * self._rise + tail.speech * self._fall
        if final:
            self._tail = None
            return speech
        self._tail = Tail(mel[:, :, -OVERLAP_FRAMES:], source[:, :, -self._overlap :], speech[-self._overlap :])
        return speech[: -self._overlap]


class Token2Wav:
    """Turns one piece's tokens into samples with one voice."""

    def __init__(self, model: CosyVoice2, prompt: Prompt, noise: Noise, on_step: Callable[[], None]) -> None:
        """`on_step` is called between the parts of the flow and the vocoder; what it raises ends the work."""
        self._model = model
        self._prompt = prompt
        self._noise = noise
        self._on_step = on_step

    def whole(self, tokens: list[int], speed: float = 1.0) -> Samples:
        """All tokens at once; `speed` above 1 is faster. Returns (frames * hop)."""
        mel = self._flow(tokens, streaming=False, finalize=True)
        if speed != 1.0:
            mel = F.interpolate(mel, size=int(mel.shape[2] / speed), mode="linear")
        wave, _ = self._model.hift(mel, self._noise, on_step=self._on_step)
        return to_numpy(wave)

    def stream(self, tokens: Iterable[int]) -> Iterator[Samples]:
        """Chunks of samples as soon as `tokens` has enough for one; the last one follows its end."""
        vocoder = ChunkVocoder(self._model.hift, self._noise, self._on_step)
        lookahead = self._model.flow.lookahead
        ends = chunk_ends(self._prompt.token.shape[1])
        spoken, end = 0, next(ends)
        arrived: list[int] = []
        for token in tokens:
            arrived.append(token)
            if len(arrived) == end + lookahead:
                mel = self._flow(arrived, streaming=True, finalize=False)
                yield vocoder(mel[:, :, spoken * MEL_FRAMES_PER_TOKEN :], final=False)
                spoken, end = end, next(ends)
        if arrived:
            # The end is solved with full attention, as the model's own streaming does.
            mel = self._flow(arrived, streaming=False, finalize=True)
            yield vocoder(mel[:, :, spoken * MEL_FRAMES_PER_TOKEN :], final=True)

    def _flow(self, tokens: list[int], *, streaming: bool, finalize: bool) -> Tensor:
        """(1, 80, frames) of `tokens`."""
        token = torch.tensor([tokens], device=self._model.device)
        with self._model.autocast():
            mel: Tensor = self._model.flow(
                token, self._prompt, streaming=streaming, finalize=finalize, on_step=self._on_step
            )
        return mel


def to_numpy(wave: Tensor) -> Samples:
    """(1, L) on any device -> (L) in the process's memory."""
    samples: Samples = wave[0].cpu().numpy()
    return samples
