"""A whole directory: what is loaded from it, and what is found wrong with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cosyvoice_worker.models.cosyvoice2.load import load
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.weights import memory
from cosyvoice_worker.weights.fold import STYLES

WEIGHTS = ("llm.pt", "flow.pt", "hift.pt")
BACKBONE = "CosyVoice-BlankEN/config.json"


@pytest.fixture
def directory(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model that a test may spoil."""
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "model"))


def ignored(_: Phase) -> None:
    pass


def outcome_of(directory: Path) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        load(directory, "cpu", "auto", ignored)
    return raised.value.outcome


def rewrite(path: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    state = torch.load(path, weights_only=True)
    change(state)
    torch.save(state, path)


def test_both_phases_are_told_in_their_order(tiny_model_dir: Path) -> None:
    phases: list[Phase] = []

    load(tiny_model_dir, "cpu", "auto", phases.append)

    assert phases == [Phase.MAP, Phase.BUILD]


def test_weights_stay_in_the_pages_of_their_files_and_cannot_be_written(directory: Path) -> None:
    model = load(directory, "cpu", "auto", ignored)

    mappings = memory.mappings_of(directory / file for file in WEIGHTS)
    assert mappings
    assert not any(mapping.writable for mapping in mappings)
    for module in (model.lm, model.flow):
        for name, parameter in module.named_parameters():
            assert any(m.start <= parameter.data_ptr() < m.start + m.size for m in mappings), name


def test_another_precision_is_the_language_model_s_alone(tiny_model_dir: Path) -> None:
    model = load(tiny_model_dir, "cpu", "bfloat16", ignored)

    assert model.dtype == torch.bfloat16
    assert {parameter.dtype for parameter in model.lm.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in model.hift.parameters()} == {torch.float32}


def test_float16_on_a_cpu_is_exit_code_64(tiny_model_dir: Path) -> None:
    with pytest.raises(WorkerError, match="float16 is only for cuda") as raised:
        load(tiny_model_dir, "cpu", "float16", ignored)

    assert raised.value.outcome.exit_code == 64


def without_lm_head(state: dict[str, torch.Tensor]) -> None:
    del state["llm.model.lm_head.weight"]


def as_a_training_saves_it(state: dict[str, torch.Tensor]) -> None:
    for name in list(state):
        state[f"generator.{name}"] = state.pop(name)


def in_the_old_weight_norm_style(state: dict[str, torch.Tensor]) -> None:
    for name in list(state):
        for new, old in zip(*STYLES, strict=True):
            if name.endswith(new):
                state[name.removesuffix(new) + old] = state.pop(name)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("llm.pt", without_lm_head),
        ("hift.pt", as_a_training_saves_it),
        ("hift.pt", in_the_old_weight_norm_style),
    ],
)
def test_variants_of_published_files_give_the_same_model(
    file: str, change: Callable[[dict[str, torch.Tensor]], None], tiny_model_dir: Path, directory: Path
) -> None:
    rewrite(directory / file, change)
    expected = load(tiny_model_dir, "cpu", "auto", ignored)

    model = load(directory, "cpu", "auto", ignored)

    for loaded, wanted in ((model.lm, expected.lm), (model.hift, expected.hift)):
        assert loaded.state_dict().keys() == wanted.state_dict().keys()
        assert all(torch.equal(tensor, wanted.state_dict()[name]) for name, tensor in loaded.state_dict().items())


def drop(name: str) -> Callable[[dict[str, torch.Tensor]], None]:
    return lambda state: state.__delitem__(name)


def put(name: str, *shape: int) -> Callable[[dict[str, torch.Tensor]], None]:
    return lambda state: state.__setitem__(name, torch.zeros(shape))


@pytest.mark.parametrize(
    ("file", "change", "reason", "tensor"),
    [
        ("llm.pt", drop("llm_decoder.bias"), Reason.MISSING_TENSOR, "llm_decoder.bias"),
        ("llm.pt", drop("llm_decoder.weight"), Reason.MISSING_TENSOR, "llm_decoder.weight"),
        ("llm.pt", put("llm_decoder.bias", 7), Reason.SHAPE_MISMATCH, "llm_decoder.bias"),
        ("llm.pt", put("llm_decoder.extra", 7), Reason.UNEXPECTED_TENSOR, "llm_decoder.extra"),
        ("flow.pt", drop("encoder_proj.weight"), Reason.MISSING_TENSOR, "encoder_proj.weight"),
        ("flow.pt", put("encoder_proj.weight", 80, 3), Reason.SHAPE_MISMATCH, "encoder_proj.weight"),
        ("hift.pt", drop("conv_pre.bias"), Reason.MISSING_TENSOR, "conv_pre.bias"),
        (
            "hift.pt",
            drop("conv_pre.parametrizations.weight.original0"),
            Reason.MISSING_TENSOR,
            "conv_pre.parametrizations.weight.original0",
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_exit_code_66(
    file: str, change: Callable[[dict[str, torch.Tensor]], None], reason: Reason, tensor: str, directory: Path
) -> None:
    rewrite(directory / file, change)

    outcome = outcome_of(directory)

    assert (outcome.exit_code, outcome.reason, outcome.file, outcome.tensor) == (66, reason, file, tensor)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "num_blocks: 1",
            "num_blocks: 6",
            "cosyvoice2.yaml: flow.encoder.num_blocks should be 1 by the shape of encoder.encoders, but is 6",
        ),
        (
            "llm_input_size: 32",
            "llm_input_size: 896",
            "cosyvoice2.yaml: llm.llm_input_size should be 32 by the shape of llm.model.model.embed_tokens.weight,"
            " but is 896",
        ),
        (
            "channels: [32]",
            "channels: [256]",
            "cosyvoice2.yaml: flow.decoder.estimator.channels should be [32] by the shape of"
            " decoder.estimator.down_blocks.0.0.block1.block.0.weight, but is [256]",
        ),
        (
            "num_heads: 2",
            "num_heads: 8",
            "cosyvoice2.yaml: flow.decoder.estimator.attention_head_dim should be 24 in all heads together by the shape"
            " of decoder.estimator.down_blocks.0.1.0.attn1.to_q.weight, but is '8 x 12'",
        ),
        (
            "upsample_kernel_sizes: [16, 11, 7]",
            "upsample_kernel_sizes: [16, 16]",
            "cosyvoice2.yaml: hift.upsample_kernel_sizes should be [16, 11, 7] by the shape of ups, but is [16, 16]",
        ),
        (
            "upsample_rates: [8, 5, 3]",
            "upsample_rates: [8, 15]",
            "cosyvoice2.yaml: hift.upsample_rates should be 3 entries, but is '2 entries'",
        ),
        (
            "n_fft: 16",
            "n_fft: 1099511627776",
            "cosyvoice2.yaml: hift.istft_params.n_fft should be 16 by the shape of conv_post.weight, but is"
            " 1099511627776",
        ),
        (
            "sample_rate: 24000",
            "sample_rate: 22050",
            "cosyvoice2.yaml: sample_rate should be 24000, but is 22050",
        ),
    ],
)
def test_a_configuration_that_contradicts_the_tensors_is_refused(
    before: str, after: str, message: str, directory: Path
) -> None:
    path = directory / "cosyvoice2.yaml"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")

    outcome = outcome_of(directory)

    assert (outcome.exit_code, outcome.reason, outcome.phase) == (66, Reason.INCOMPATIBLE_MODEL, Phase.BUILD)
    assert outcome.message == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": 24}, "num_hidden_layers should be 2 by the shape of llm.model.model.layers, but is 24"),
        ({"num_attention_heads": 14}, "num_attention_heads should be a divisor of 16 by the shape of"),
        ({"num_key_value_heads": 4}, "num_key_value_heads should be 2 by the shape of"),
        ({"vocab_size": 151936}, "vocab_size should be 740 by the shape of"),
    ],
)
def test_a_backbone_that_contradicts_the_tensors_is_refused(
    change: dict[str, int], message: str, directory: Path
) -> None:
    path = directory / BACKBONE
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")

    outcome = outcome_of(directory)

    assert (outcome.reason, outcome.file) == (Reason.INCOMPATIBLE_MODEL, BACKBONE)
    assert message in outcome.message


@pytest.mark.parametrize("file", WEIGHTS)
def test_a_missing_file_is_named(file: str, directory: Path) -> None:
    (directory / file).unlink()

    outcome = outcome_of(directory)

    assert (outcome.exit_code, outcome.reason, outcome.file) == (66, Reason.MISSING_FILE, file)
