"""A loaded CosyVoice2: its three networks, on one device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

from cosyvoice_worker.models.cosyvoice2.config import CosyVoice2Config
from cosyvoice_worker.models.cosyvoice2.flow import Flow
from cosyvoice_worker.models.cosyvoice2.hift import Hift
from cosyvoice_worker.models.cosyvoice2.lm import SpeechLM


@dataclass(frozen=True, slots=True)
class CosyVoice2:
    """Text to speech tokens (lm), tokens to mel (flow), mel to samples (hift)."""

    lm: SpeechLM
    flow: Flow
    hift: Hift
    config: CosyVoice2Config
    device: torch.device
    dtype: torch.dtype  # lm's weights have it, the flow is cast to it where that is safe, hift is always float32

    def autocast(self) -> AbstractContextManager[object]:
        """The context in which the flow runs."""
        if self.dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)
