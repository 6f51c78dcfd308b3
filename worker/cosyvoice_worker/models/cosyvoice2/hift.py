"""HiFT, the vocoder: a mel spectrogram to samples by way of a short inverse Fourier transform (`hift.pt`).

HiFi-GAN's upsampling with an excitation from the pitch, ending in the magnitude and phase of an STFT instead of samples
(iSTFTNet). Weight norm is folded when the file is loaded: the convolutions here are plain ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.config import HiftConfig
from cosyvoice_worker.models.cosyvoice2.f0 import F0Predictor, F0Sizes
from cosyvoice_worker.models.cosyvoice2.resblock import ResBlock
from cosyvoice_worker.models.cosyvoice2.shapes import Shapes
from cosyvoice_worker.models.cosyvoice2.source import HarmonicSource, Noise, SineGenerator

MAX_MAGNITUDE = 100.0
POST_SLOPE = 0.01


def _nothing() -> None:
    """A step that nobody counts."""


@dataclass(frozen=True, slots=True)
class HiftSizes:
    """Widths and kernels of the vocoder, as the checkpoint's tensors tell them."""

    mel_channels: int
    channels: int  # halved by every upsampling stage
    harmonics: int
    pre_kernel: int
    post_kernel: int
    n_fft: int  # the last convolution gives the real and the imaginary part of each bin
    up_kernels: tuple[int, ...]
    resblock_kernels: tuple[int, ...]  # side by side in every stage
    source_resblock_kernels: tuple[int, ...]  # one a stage
    f0: F0Sizes


class Hift(nn.Module):
    """The vocoder."""

    window: Tensor

    def __init__(self, sizes: HiftSizes, config: HiftConfig) -> None:
        super().__init__()
        rates = config.upsample_rates
        self.slope = config.lrelu_slope
        self.limit = config.audio_limit
        self.n_fft = config.istft_n_fft
        self.istft_hop = config.istft_hop
        self.hop = math.prod(rates) * config.istft_hop  # samples per mel frame
        self.side_by_side = len(sizes.resblock_kernels)
        self.register_buffer("window", torch.hann_window(self.n_fft), persistent=False)

        self.f0_predictor = F0Predictor(sizes.f0)
        self.m_source = HarmonicSource(
            SineGenerator(
                harmonics=sizes.harmonics,
                sample_rate=config.sample_rate,
                hop=self.hop,
                amplitude=config.sine_amplitude,
                noise=config.noise_amplitude,
                voiced_threshold=config.voiced_threshold,
            )
        )
        self.conv_pre = nn.Conv1d(sizes.mel_channels, sizes.channels, sizes.pre_kernel, padding=sizes.pre_kernel // 2)
        self.ups = nn.ModuleList()
        self.source_downs = nn.ModuleList()
        self.source_resblocks = nn.ModuleList()
        self.resblocks = nn.ModuleList()
        for stage, (rate, kernel) in enumerate(zip(rates, sizes.up_kernels, strict=True)):
            wide, channels = sizes.channels >> stage, sizes.channels >> (stage + 1)
            self.ups.append(nn.ConvTranspose1d(wide, channels, kernel, stride=rate, padding=(kernel - rate) // 2))
            self.source_downs.append(_source_down(self.n_fft + 2, channels, math.prod(rates[stage + 1 :])))
            self.source_resblocks.append(
                ResBlock(channels, sizes.source_resblock_kernels[stage], config.source_resblock_dilations[stage])
            )
            self.resblocks.extend(
                ResBlock(channels, size, dilations)
                for size, dilations in zip(sizes.resblock_kernels, config.resblock_dilations, strict=True)
            )
        self.conv_post = nn.Conv1d(channels, self.n_fft + 2, sizes.post_kernel, padding=sizes.post_kernel // 2)

    @torch.inference_mode()
    def forward(
        self,
        mel: Tensor,
        noise: Noise,
        cached_source: Tensor | None = None,
        on_step: Callable[[], None] = _nothing,
    ) -> tuple[Tensor, Tensor]:
        """mel (1, 80, T) -> samples (1, T * hop) within ±audio_limit, and the excitation (1, 1, T * hop) behind them.

        `cached_source` (1, 1, n) replaces the excitation's first n samples: the end of the chunk before, so that the
        overlap of two chunks is in phase. `on_step` is called before each residual block.
        """
        source = self.excitation(mel, noise)
        if cached_source is not None:
            source[:, :, : cached_source.shape[2]] = cached_source
        return self.decode(mel, source, on_step), source

    def excitation(self, mel: Tensor, noise: Noise) -> Tensor:
        """(1, 80, T) -> (1, 1, T * hop)."""
        source: Tensor = self.m_source(self.f0_predictor(mel), noise)
        return source

    def decode(self, mel: Tensor, source: Tensor, on_step: Callable[[], None] = _nothing) -> Tensor:
        """mel (1, 80, T) and excitation (1, 1, T * hop) -> samples (1, T * hop)."""
        spectrum = self.stft(source)
        x = self.conv_pre(mel)
        for stage, up in enumerate(self.ups):
            x = up(F.leaky_relu(x, self.slope))
            if stage == len(self.ups) - 1:
                # An STFT has one frame more than there are hops.
                x = F.pad(x, (1, 0), mode="reflect")
            x = x + self.source_resblocks[stage](self.source_downs[stage](spectrum))
            x = self._mean_of_resblocks(stage, x, on_step)
        x = self.conv_post(F.leaky_relu(x, POST_SLOPE))
        bins = self.n_fft // 2 + 1
        samples = self.istft(torch.exp(x[:, :bins]), torch.sin(x[:, bins:]))
        return samples.clamp(-self.limit, self.limit)

    def _mean_of_resblocks(self, stage: int, x: Tensor, on_step: Callable[[], None]) -> Tensor:
        first, *others = self.resblocks[stage * self.side_by_side : (stage + 1) * self.side_by_side]
        on_step()
        total: Tensor = first(x)
        for block in others:
            on_step()
            total += block(x)
        return total.div_(self.side_by_side)

    def stft(self, source: Tensor) -> Tensor:
        """(1, 1, L) -> (1, n_fft + 2, L / hop + 1): the real parts, then the imaginary parts."""
        spectrum = torch.stft(
            source[:, 0], self.n_fft, self.istft_hop, self.n_fft, window=self.window, return_complex=True
        )
        return torch.cat((spectrum.real, spectrum.imag), dim=1)

    def istft(self, magnitude: Tensor, phase: Tensor) -> Tensor:
        """Both (1, n_fft / 2 + 1, frames) -> (1, (frames - 1) * hop). Magnitudes are capped at MAX_MAGNITUDE."""
        spectrum = torch.polar(magnitude.clamp(max=MAX_MAGNITUDE), phase)
        return torch.istft(spectrum, self.n_fft, self.istft_hop, self.n_fft, window=self.window)


def _source_down(in_channels: int, channels: int, rate: int) -> nn.Conv1d:
    """Brings the excitation's spectrum down to a stage's rate, `rate` times below the last one's."""
    if rate == 1:
        return nn.Conv1d(in_channels, channels, 1)
    return nn.Conv1d(in_channels, channels, 2 * rate, stride=rate, padding=rate // 2)


def hift_sizes(state: Mapping[str, Tensor]) -> HiftSizes:
    """Sizes from hift.pt's tensors, weight norm folded; raises WorkerError for a missing one or one of another rank."""
    shapes = Shapes("hift.pt", state)
    channels, mel_channels, pre_kernel = shapes.of("conv_pre.weight", 3)
    stages = shapes.count("ups.")
    side_by_side = shapes.count("resblocks.") // max(stages, 1)
    f0_channels, f0_mel_channels, f0_kernel = shapes.of("f0_predictor.condnet.0.weight", 3)
    return HiftSizes(
        mel_channels=mel_channels,
        channels=channels,
        harmonics=shapes.of("m_source.l_linear.weight", 2)[1],
        pre_kernel=pre_kernel,
        post_kernel=shapes.of("conv_post.weight", 3)[2],
        n_fft=shapes.of("conv_post.weight", 3)[0] - 2,
        up_kernels=tuple(shapes.of(f"ups.{i}.weight", 3)[2] for i in range(stages)),
        resblock_kernels=tuple(shapes.of(f"resblocks.{i}.convs1.0.weight", 3)[2] for i in range(side_by_side)),
        source_resblock_kernels=tuple(shapes.of(f"source_resblocks.{i}.convs1.0.weight", 3)[2] for i in range(stages)),
        f0=F0Sizes(
            mel_channels=f0_mel_channels,
            channels=f0_channels,
            layers=shapes.count("f0_predictor.condnet.", step=2),
            kernel=f0_kernel,
        ),
    )


def build_hift(sizes: HiftSizes, config: HiftConfig) -> Hift:
    """The module whose parameter names and shapes are those of hift.pt after the weight norm is folded."""
    return Hift(sizes, config).eval()
