"""Conditional flow matching: from noise to a mel by ten Euler steps along the estimator's velocity.

Classifier-free guidance: each step asks twice, with the condition and with none (text, speaker and prompt all zero).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

MEL_CHANNELS = 80
MAX_FRAMES = 15000
EULER_STEPS = 10
NOISE_SEED = 0


def fixed_noise() -> Tensor:
    """The initial noise of every request, (1, 80, MAX_FRAMES).

    Always the same, so that the chunks of a stream, each solved from the prompt's start, agree on their common frames.
    """
    generator = torch.Generator().manual_seed(NOISE_SEED)
    return torch.randn(1, MEL_CHANNELS, MAX_FRAMES, generator=generator)


def euler_schedule(steps: int) -> list[tuple[float, float]]:
    """(t, dt) of each step: t_k = 1 - cos(pi/2 * k/steps), summed up in float32 as the training's solver does."""
    span = 1 - torch.cos(torch.linspace(0, 1, steps + 1) * 0.5 * math.pi)
    schedule = []
    t = span[0]
    for target in span[1:]:
        dt = target - t
        schedule.append((t.item(), dt.item()))
        t = t + dt
    return schedule


class ConditionalFlowMatching(nn.Module):
    """The solver around the estimator."""

    rand_noise: Tensor

    def __init__(self, estimator: nn.Module, guidance: float) -> None:
        """`guidance`: how far to go beyond the conditional velocity, away from the unconditional one (0.7)."""
        super().__init__()
        self.estimator = estimator
        self.guidance = guidance
        self.schedule = euler_schedule(EULER_STEPS)
        self.register_buffer("rand_noise", fixed_noise(), persistent=False)

    def forward(
        self, mu: Tensor, speaker: Tensor, prompt: Tensor, *, streaming: bool, on_step: Callable[[], None]
    ) -> Tensor:
        """Solve for the mel of `mu`.

        Args:
            mu: (1, 80, T), what the encoder makes of the tokens; T at most MAX_FRAMES.
            speaker: (1, 80).
            prompt: (1, 80, T), the prompt's mel in its first frames, zero elsewhere.
            streaming: restrict attention to the chunks so far.
            on_step: called before each block of each step; what it raises ends the solving.

        Returns: (1, 80, T), float32.
        """
        channels, frames = mu.shape[1:]
        if frames > MAX_FRAMES:
            raise ValueError(f"the flow solves at most {MAX_FRAMES} mel frames at once, got {frames}")
        x = self.rand_noise[:, :, :frames]
        # The estimator's input, filled once: only the noisy mel in front changes from step to step.
        inputs = torch.zeros(2, 4 * channels, frames, device=mu.device)  # (B, x|mu|speaker|prompt, T)
        inputs[0, channels:] = torch.cat((mu, speaker[..., None].expand_as(mu), prompt), dim=1)[0]
        for t, dt in self.schedule:
            inputs[:, :channels] = x
            time = torch.tensor([t], device=mu.device)
            velocity = self.estimator(inputs, time, streaming=streaming, on_step=on_step)
            conditional, unconditional = velocity.float().split(1)
            x = x + dt * ((1 + self.guidance) * conditional - self.guidance * unconditional)
        return x
