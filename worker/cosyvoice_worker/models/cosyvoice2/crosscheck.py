"""Holds the configuration against the tensors: what both tell must agree, or the directory mixes two models."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cosyvoice_worker.models.cosyvoice2.config import BackboneConfig, CosyVoice2Config, FlowConfig, HiftConfig
from cosyvoice_worker.models.cosyvoice2.encoder import UPSAMPLE_RATE
from cosyvoice_worker.models.cosyvoice2.flow import FlowSizes
from cosyvoice_worker.models.cosyvoice2.hift import HiftSizes
from cosyvoice_worker.models.cosyvoice2.lm import BACKBONE, CONTROL_TOKENS, SpeechLMSizes
from cosyvoice_worker.models.cosyvoice2.settings import Settings
from cosyvoice_worker.outcome import Phase


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the tensors of all three files tell."""

    lm: SpeechLMSizes
    flow: FlowSizes
    hift: HiftSizes


def check(config: CosyVoice2Config, sizes: Sizes) -> None:
    """Raise WorkerError (IncompatibleModel) for the first value of the configuration that contradicts a tensor."""
    yaml, backbone = config.yaml.during(Phase.BUILD), config.backbone_json.during(Phase.BUILD)
    _check_backbone(backbone, yaml, config.backbone, sizes.lm)
    _check_flow(yaml, config.flow, sizes.flow)
    _check_hift(yaml, config.hift, sizes.hift)
    samples_per_frame = math.prod(config.hift.upsample_rates) * config.hift.istft_hop
    yaml.require("sample_rate", config.token_rate * UPSAMPLE_RATE * samples_per_frame, config.sample_rate)
    yaml.require("hift.sampling_rate", config.sample_rate, config.hift.sample_rate)
    yaml.require("token_mel_ratio", UPSAMPLE_RATE, yaml.integer("token_mel_ratio"))


def _check_backbone(file: Settings, yaml: Settings, heads: BackboneConfig, sizes: SpeechLMSizes) -> None:
    qwen = sizes.backbone
    layer = f"{BACKBONE}layers.0."
    _agree(file, "vocab_size", qwen.vocabulary, f"{BACKBONE}embed_tokens.weight")
    _agree(file, "hidden_size", qwen.channels, f"{BACKBONE}embed_tokens.weight")
    _agree(file, "num_hidden_layers", qwen.layers, f"{BACKBONE}layers")
    _agree(file, "intermediate_size", qwen.hidden, f"{layer}mlp.gate_proj.weight")
    query = f"{layer}self_attn.q_proj.weight"
    if heads.heads < 1 or qwen.query % (2 * heads.heads):
        raise file.mismatch("num_attention_heads", f"a divisor of {qwen.query // 2}", heads.heads, query)
    head_dim = qwen.query // heads.heads
    _agree(file, "num_key_value_heads", qwen.key_value // head_dim, f"{layer}self_attn.k_proj.weight")
    if heads.heads % heads.key_value_heads:
        raise file.mismatch("num_attention_heads", f"a multiple of {heads.key_value_heads}", heads.heads, query)
    _agree(yaml, "llm.llm_input_size", qwen.channels, f"{BACKBONE}embed_tokens.weight")
    _agree(yaml, "llm.llm_output_size", qwen.channels, f"{BACKBONE}embed_tokens.weight")
    _agree(yaml, "llm.speech_token_size", sizes.ids - CONTROL_TOKENS, "llm_decoder.weight")


def _check_flow(yaml: Settings, flow: FlowConfig, sizes: FlowSizes) -> None:
    encoder, estimator = sizes.encoder, sizes.estimator
    _agree(yaml, "flow.vocab_size", sizes.tokens, "input_embedding.weight")
    _agree(yaml, "flow.input_size", encoder.input_channels, "input_embedding.weight")
    _agree(yaml, "flow.spk_embed_dim", sizes.speaker, "spk_embed_affine_layer.weight")
    _agree(yaml, "flow.output_size", estimator.out_channels, "decoder.estimator.final_proj.weight")
    _agree(yaml, "flow.pre_lookahead_len", encoder.lookahead, "encoder.pre_lookahead_layer.conv1.weight")
    _agree(yaml, "flow.encoder.output_size", encoder.channels, "encoder.embed.out.0.weight")
    _agree(yaml, "flow.encoder.attention_heads", encoder.heads, "encoder.encoders.0.self_attn.pos_bias_u")
    _agree(yaml, "flow.encoder.linear_units", encoder.hidden, "encoder.encoders.0.feed_forward.w_1.weight")
    _agree(yaml, "flow.encoder.num_blocks", encoder.layers, "encoder.encoders")
    block = "decoder.estimator.down_blocks.0."
    path = "flow.decoder.estimator."
    channels = yaml.integers(f"{path}channels")
    if channels != (estimator.channels,):
        raise yaml.mismatch(f"{path}channels", [estimator.channels], list(channels), f"{block}0.block1.block.0.weight")
    _agree(yaml, f"{path}n_blocks", estimator.blocks, f"{block}1")
    _agree(yaml, f"{path}num_mid_blocks", estimator.mid_blocks, "decoder.estimator.mid_blocks")
    head_dim = yaml.integer(f"{path}attention_head_dim")
    if head_dim * flow.estimator_heads != estimator.inner:
        expected = f"{estimator.inner} in all heads together"
        actual = f"{flow.estimator_heads} x {head_dim}"
        raise yaml.mismatch(f"{path}attention_head_dim", expected, actual, f"{block}1.0.attn1.to_q.weight")


def _check_hift(yaml: Settings, hift: HiftConfig, sizes: HiftSizes) -> None:
    _agree(yaml, "hift.in_channels", sizes.mel_channels, "conv_pre.weight")
    _agree(yaml, "hift.base_channels", sizes.channels, "conv_pre.weight")
    _agree(yaml, "hift.istft_params.n_fft", sizes.n_fft, "conv_post.weight")
    _agree(yaml, "hift.nb_harmonics", sizes.harmonics - 1, "m_source.l_linear.weight")
    _agree(yaml, "hift.f0_predictor.cond_channels", sizes.f0.channels, "f0_predictor.condnet.0.weight")
    kernels = {
        "hift.upsample_kernel_sizes": (sizes.up_kernels, "ups"),
        "hift.resblock_kernel_sizes": (sizes.resblock_kernels, "resblocks"),
        "hift.source_resblock_kernel_sizes": (sizes.source_resblock_kernels, "source_resblocks"),
    }
    for path, (expected, tensor) in kernels.items():
        if (actual := yaml.integers(path)) != expected:
            raise yaml.mismatch(path, list(expected), list(actual), tensor)
    for path, count, wanted in (
        ("hift.upsample_rates", len(hift.upsample_rates), len(sizes.up_kernels)),
        ("hift.resblock_dilation_sizes", len(hift.resblock_dilations), len(sizes.resblock_kernels)),
        ("hift.source_resblock_dilation_sizes", len(hift.source_resblock_dilations), len(sizes.up_kernels)),
    ):
        yaml.require(path, f"{wanted} entries", f"{count} entries")


def _agree(settings: Settings, path: str, by_tensor: int, tensor: str) -> None:
    if (value := settings.integer(path)) != by_tensor:
        raise settings.mismatch(path, by_tensor, value, tensor)
