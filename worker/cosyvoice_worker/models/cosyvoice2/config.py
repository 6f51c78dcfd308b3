"""The configuration of a CosyVoice2 directory: what tensor shapes cannot tell, and what they are checked against.

Two files hold it: `cosyvoice2.yaml`, and `CosyVoice-BlankEN/config.json` for the language model's backbone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.models.cosyvoice2 import hyperyaml
from cosyvoice_worker.models.cosyvoice2.settings import Settings
from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.regular_files import open_regular

YAML_FILE = "cosyvoice2.yaml"
OTHER_VERSIONS = {"cosyvoice.yaml": 1, "cosyvoice3.yaml": 3}
TOKENIZER_DIR = "CosyVoice-BlankEN"
BACKBONE_FILE = f"{TOKENIZER_DIR}/config.json"
MAX_BACKBONE_BYTES = 64 * 1024

# The classes this worker computes, by the place that names them. Another class under these names is another model.
ARCHITECTURE = {
    "llm": "Qwen2LM",
    "llm.sampling": "ras_sampling",
    "flow": "CausalMaskedDiffWithXvec",
    "flow.encoder": "UpsampleConformerEncoder",
    "flow.decoder": "CausalConditionalCFM",
    "flow.decoder.estimator": "CausalConditionalDecoder",
    "hift": "HiFTGenerator",
    "hift.f0_predictor": "ConvRNNF0Predictor",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneConfig:
    """Qwen2, as its config.json says it."""

    heads: int
    key_value_heads: int
    rms_norm_eps: float
    rope_theta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingConfig:
    """Repetition-aware nucleus sampling of speech tokens."""

    top_p: float
    top_k: int
    window: int  # recent tokens among which a repetition is looked for
    repetition_share: float  # of the window, from which on a token counts as repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowConfig:
    """Of the flow: what its tensors do not tell."""

    chunk_size: int  # speech tokens that a streaming query sees at once
    estimator_heads: int
    guidance: float  # of classifier-free guidance


@dataclass(frozen=True, slots=True, kw_only=True)
class HiftConfig:
    """Of the vocoder: what its tensors do not tell."""

    sample_rate: int
    sine_amplitude: float
    noise_amplitude: float
    voiced_threshold: float  # Hz; frames of a lower pitch are unvoiced
    upsample_rates: tuple[int, ...]
    istft_n_fft: int
    istft_hop: int
    resblock_dilations: tuple[tuple[int, ...], ...]  # of the parallel residual blocks
    source_resblock_dilations: tuple[tuple[int, ...], ...]  # of the source's residual block of each stage
    lrelu_slope: float
    audio_limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CosyVoice2Config:
    """Everything that building the model needs besides its tensors."""

    sample_rate: int  # Hz
    token_rate: int  # speech tokens a second
    backbone: BackboneConfig
    sampling: SamplingConfig
    flow: FlowConfig
    hift: HiftConfig
    yaml: Settings  # both whole files, for the check against the tensors
    backbone_json: Settings


def read(model_dir: Path) -> CosyVoice2Config:
    """Read and check both files.

    Raises WorkerError: MissingFile, UnknownVersion for another version's yaml, IncompatibleModel for values or classes
    that this worker does not compute.
    """
    yaml, backbone = _yaml(model_dir), _backbone_json(model_dir)
    for path, target in ARCHITECTURE.items():
        yaml.require(path, target, yaml.target(path))
    backbone.require("hidden_act", "silu", backbone.text("hidden_act"))
    backbone.require("use_sliding_window", False, backbone.optional("use_sliding_window", False))
    backbone.require("rope_scaling", None, backbone.optional("rope_scaling", None))
    return CosyVoice2Config(
        sample_rate=yaml.integer("sample_rate"),
        token_rate=yaml.integer("token_frame_rate"),
        backbone=BackboneConfig(
            heads=backbone.integer("num_attention_heads"),
            key_value_heads=backbone.integer("num_key_value_heads"),
            rms_norm_eps=backbone.number("rms_norm_eps"),
            rope_theta=backbone.number("rope_theta"),
        ),
        sampling=SamplingConfig(
            top_p=yaml.number("llm.sampling.top_p"),
            top_k=yaml.integer("llm.sampling.top_k"),
            window=yaml.integer("llm.sampling.win_size"),
            repetition_share=yaml.number("llm.sampling.tau_r"),
        ),
        flow=FlowConfig(
            chunk_size=yaml.integer("flow.encoder.static_chunk_size"),
            estimator_heads=yaml.integer("flow.decoder.estimator.num_heads"),
            guidance=yaml.number("flow.decoder.cfm_params.content.inference_cfg_rate"),
        ),
        hift=HiftConfig(
            sample_rate=yaml.integer("hift.sampling_rate"),
            sine_amplitude=yaml.number("hift.nsf_alpha"),
            noise_amplitude=yaml.number("hift.nsf_sigma"),
            voiced_threshold=yaml.number("hift.nsf_voiced_threshold"),
            upsample_rates=yaml.integers("hift.upsample_rates"),
            istft_n_fft=yaml.integer("hift.istft_params.n_fft"),
            istft_hop=yaml.integer("hift.istft_params.hop_len"),
            resblock_dilations=yaml.lists_of_integers("hift.resblock_dilation_sizes"),
            source_resblock_dilations=yaml.lists_of_integers("hift.source_resblock_dilation_sizes"),
            lrelu_slope=yaml.number("hift.lrelu_slope"),
            audio_limit=yaml.number("hift.audio_limit"),
        ),
        yaml=yaml,
        backbone_json=backbone,
    )


def _yaml(model_dir: Path) -> Settings:
    try:
        return Settings(YAML_FILE, hyperyaml.read(model_dir / YAML_FILE))
    except FileNotFoundError:
        raise _no_yaml(model_dir) from None
    except (ValueError, OSError) as error:
        message = f"{YAML_FILE} cannot be read: {error}"
        raise fail(Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=YAML_FILE) from error


def _no_yaml(model_dir: Path) -> Exception:
    for name, version in OTHER_VERSIONS.items():
        if (model_dir / name).exists():
            message = f"{name} makes this a CosyVoice {version} model; versions 1 and 3 are not served yet, only 2 is"
            return fail(Reason.UNKNOWN_VERSION, Phase.MAP, message, file=name, expected=YAML_FILE, actual=name)
    message = f"there is no {YAML_FILE}: is this the directory of a CosyVoice2 model?"
    return fail(Reason.MISSING_FILE, Phase.MAP, message, file=YAML_FILE)


def _backbone_json(model_dir: Path) -> Settings:
    try:
        with open_regular(model_dir / BACKBONE_FILE) as file:
            values = json.loads(file.read(MAX_BACKBONE_BYTES))
    except FileNotFoundError:
        message = f"there is no {BACKBONE_FILE}, which describes the language model"
        raise fail(Reason.MISSING_FILE, Phase.MAP, message, file=BACKBONE_FILE) from None
    except (ValueError, OSError, RecursionError) as error:
        message = f"{BACKBONE_FILE} cannot be read: {error}"
        raise fail(Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=BACKBONE_FILE) from error
    if not isinstance(values, dict):
        message = f"{BACKBONE_FILE} holds no JSON object"
        raise fail(Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=BACKBONE_FILE)
    return Settings(BACKBONE_FILE, hyperyaml.HyperYaml(values))
