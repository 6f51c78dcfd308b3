"""The flow: speech tokens, a speaker and a prompt to a mel spectrogram (`flow.pt`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.cfm import MEL_CHANNELS, ConditionalFlowMatching
from cosyvoice_worker.models.cosyvoice2.config import FlowConfig
from cosyvoice_worker.models.cosyvoice2.encoder import UPSAMPLE_RATE, EncoderSizes, UpsampleConformerEncoder
from cosyvoice_worker.models.cosyvoice2.shapes import Shapes
from cosyvoice_worker.models.cosyvoice2.unet import CausalUNet, UNetSizes

MEL_FRAMES_PER_TOKEN = UPSAMPLE_RATE


@dataclass(frozen=True, slots=True)
class FlowSizes:
    """Widths and depths of the flow, as the checkpoint's tensors tell them."""

    tokens: int
    speaker: int  # width of a speaker embedding
    encoder: EncoderSizes
    estimator: UNetSizes


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a voice gives the flow: N tokens of a recording, its mel and its speaker. N may be 0."""

    token: Tensor  # (1, N) int64
    mel: Tensor  # (1, 2N, 80) float32
    embedding: Tensor  # (1, 192) float32, of any length; zero means no speaker


class Flow(nn.Module):
    """Token embedding, encoder, and the flow-matching decoder."""

    def __init__(self, sizes: FlowSizes, config: FlowConfig) -> None:
        super().__init__()
        encoder, estimator = sizes.encoder, sizes.estimator
        self.lookahead = encoder.lookahead
        self.input_embedding = nn.Embedding(sizes.tokens, encoder.input_channels)
        self.spk_embed_affine_layer = nn.Linear(sizes.speaker, MEL_CHANNELS)
        self.encoder = UpsampleConformerEncoder(encoder, config.chunk_size)
        self.encoder_proj = nn.Linear(encoder.channels, MEL_CHANNELS)
        unet = CausalUNet(estimator, config.estimator_heads, config.chunk_size * MEL_FRAMES_PER_TOKEN)
        self.decoder = ConditionalFlowMatching(unet, config.guidance)

    @torch.inference_mode()
    def forward(
        self, token: Tensor, prompt: Prompt, *, streaming: bool, finalize: bool, on_step: Callable[[], None]
    ) -> Tensor:
        """The mel of `token` (1, T).

        Args:
            token: int64; with `finalize` False the last `lookahead` of them are only looked at.
            prompt: the voice.
            streaming: restrict attention to chunks, so that what was computed before stays as it was.
            finalize: whether `token` is complete.
            on_step: called before each part of an encoder layer and of a solver step; what it raises ends the work.

        Returns: (1, 80, 2 * T) float32, or (1, 80, 2 * (T - lookahead)) when not `finalize`.
        """
        speaker = self.spk_embed_affine_layer(F.normalize(prompt.embedding, dim=1))  # (1, 80)
        rows = self.input_embedding(torch.cat((prompt.token, token), dim=1))
        context = None
        if not finalize:
            rows, context = rows[:, : -self.lookahead], rows[:, -self.lookahead :]
        hidden = self.encoder(rows, context, streaming=streaming, on_step=on_step)
        mu = self.encoder_proj(hidden).transpose(1, 2)  # (1, 80, frames)

        prompt_frames = prompt.mel.shape[1]
        known = F.pad(prompt.mel.transpose(1, 2), (0, mu.shape[2] - prompt_frames))
        mel: Tensor = self.decoder(mu, speaker, known, streaming=streaming, on_step=on_step)
        return mel[:, :, prompt_frames:]


def flow_sizes(state: Mapping[str, Tensor]) -> FlowSizes:
    """Sizes from the tensors of flow.pt; raises WorkerError naming a tensor that is missing or has another rank."""
    shapes = Shapes("flow.pt", state)
    tokens, input_channels = shapes.of("input_embedding.weight", 2)
    return FlowSizes(
        tokens=tokens,
        speaker=shapes.of("spk_embed_affine_layer.weight", 2)[1],
        encoder=_encoder_sizes(shapes, input_channels),
        estimator=_estimator_sizes(shapes),
    )


def _encoder_sizes(shapes: Shapes, input_channels: int) -> EncoderSizes:
    return EncoderSizes(
        input_channels=input_channels,
        channels=shapes.of("encoder.embed.out.0.weight", 2)[0],
        heads=shapes.of("encoder.encoders.0.self_attn.pos_bias_u", 2)[0],
        hidden=shapes.of("encoder.encoders.0.feed_forward.w_1.weight", 2)[0],
        layers=shapes.count("encoder.encoders."),
        up_layers=shapes.count("encoder.up_encoders."),
        lookahead=shapes.of("encoder.pre_lookahead_layer.conv1.weight", 3)[2] - 1,
        lookahead_kernel=shapes.of("encoder.pre_lookahead_layer.conv2.weight", 3)[2],
        up_kernel=shapes.of("encoder.up_layer.conv.weight", 3)[2],
    )


def _estimator_sizes(shapes: Shapes) -> UNetSizes:
    down = "decoder.estimator.down_blocks.0."
    channels, in_channels, kernel = shapes.of(f"{down}0.block1.block.0.weight", 3)
    return UNetSizes(
        in_channels=in_channels,
        out_channels=shapes.of("decoder.estimator.final_proj.weight", 3)[0],
        channels=channels,
        time_channels=shapes.of("decoder.estimator.time_mlp.linear_2.weight", 2)[0],
        inner=shapes.of(f"{down}1.0.attn1.to_q.weight", 2)[0],
        hidden=shapes.of(f"{down}1.0.ff.net.0.proj.weight", 2)[0],
        blocks=shapes.count(f"{down}1."),
        mid_blocks=shapes.count("decoder.estimator.mid_blocks."),
        kernel=kernel,
    )


def build_flow(sizes: FlowSizes, config: FlowConfig) -> Flow:
    """The module whose parameter names and shapes are those of flow.pt."""
    return Flow(sizes, config).eval()
