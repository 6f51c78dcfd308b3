"""Reading a model directory's configuration: data, never code; and every contradiction by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cosyvoice_worker.models.cosyvoice2 import config
from cosyvoice_worker.models.cosyvoice2.config import BackboneConfig, FlowConfig, HiftConfig, SamplingConfig
from cosyvoice_worker.outcome import Outcome, Reason, WorkerError
from dev.models.tiny import RECIPE


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Only the configuration of the tiny model."""
    shutil.copytree(RECIPE / "side", tmp_path, dirs_exist_ok=True)
    return tmp_path


def outcome_of(directory: Path) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        config.read(directory)
    return raised.value.outcome


def replace_in(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_the_tiny_model_s_values_are_read(directory: Path) -> None:
    read = config.read(directory)

    assert (read.sample_rate, read.token_rate) == (24000, 25)
    assert read.backbone == BackboneConfig(heads=4, key_value_heads=2, rms_norm_eps=1e-6, rope_theta=1e6)
    assert read.sampling == SamplingConfig(top_p=0.8, top_k=25, window=10, repetition_share=0.1)
    assert read.flow == FlowConfig(chunk_size=25, estimator_heads=2, guidance=0.7)
    assert read.hift == HiftConfig(
        sample_rate=24000,
        sine_amplitude=0.1,
        noise_amplitude=0.003,
        voiced_threshold=10.0,
        upsample_rates=(8, 5, 3),
        istft_n_fft=16,
        istft_hop=4,
        resblock_dilations=((1, 3, 5),) * 3,
        source_resblock_dilations=((1, 3, 5),) * 3,
        lrelu_slope=0.1,
        audio_limit=0.99,
    )


def test_a_configuration_of_the_published_size_is_read_with_its_training_half_left_alone(directory: Path) -> None:
    shutil.copytree(RECIPE / "full", directory, dirs_exist_ok=True)

    read = config.read(directory)

    assert (directory / "cosyvoice2.yaml").stat().st_size > 6000
    assert (read.backbone.heads, read.flow.estimator_heads) == (14, 8)
    assert read.yaml.target("hifigan.discriminator.mpd") == "MultiPeriodDiscriminator"
    assert read.yaml.target("hifigan.generator") == "HiFTGenerator"
    assert read.yaml.integer("flow.decoder.estimator.static_chunk_size") == 50
    assert read.yaml.number("train_conf.optim_conf.lr") == 1e-5


@pytest.mark.parametrize(
    ("present", "reason", "message"),
    [
        (
            ["cosyvoice.yaml"],
            Reason.UNKNOWN_VERSION,
            "cosyvoice.yaml makes this a CosyVoice 1 model; versions 1 and 3 are not served yet, only 2 is",
        ),
        (
            ["cosyvoice3.yaml"],
            Reason.UNKNOWN_VERSION,
            "cosyvoice3.yaml makes this a CosyVoice 3 model; versions 1 and 3 are not served yet, only 2 is",
        ),
        ([], Reason.MISSING_FILE, "there is no cosyvoice2.yaml: is this the directory of a CosyVoice2 model?"),
    ],
    ids=["version 1", "version 3", "none"],
)
def test_the_yaml_s_name_decides_the_version(present: list[str], reason: Reason, message: str, directory: Path) -> None:
    (directory / "cosyvoice2.yaml").unlink()
    for name in present:
        (directory / name).touch()

    outcome = outcome_of(directory)

    assert (outcome.exit_code, outcome.reason, outcome.message) == (66, reason, message)


def test_a_missing_backbone_configuration_is_named(directory: Path) -> None:
    (directory / "CosyVoice-BlankEN" / "config.json").unlink()

    outcome = outcome_of(directory)

    assert (outcome.reason, outcome.file) == (Reason.MISSING_FILE, "CosyVoice-BlankEN/config.json")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "ras_sampling",
            "nucleus_sampling",
            "llm.sampling should be ras_sampling, but is 'nucleus_sampling'",
        ),
        ("CausalConditionalDecoder", "DiT", "flow.decoder.estimator should be CausalConditionalDecoder, but is 'DiT'"),
        ("top_k: 25", "top_q: 25", "llm.sampling.top_k should be set, but is 'absent'"),
        ("top_k: 25", "top_k: many", "llm.sampling.top_k should be a whole number, but is 'many'"),
        ("top_p: 0.8", "top_p: .nan", "llm.sampling.top_p should be a number, but is nan"),
        ("top_k: 25", "top_k: True", "llm.sampling.top_k should be a whole number, but is True"),
        ("<chunk_size>", "<size>", "flow.encoder.static_chunk_size should be a value that can be resolved, but is"),
        ("chunk_size: 25", "chunk_size: !ref <chunk_size>", "references lead in a circle"),
        ("upsample_rates: [8, 5, 3]", "upsample_rates: 8", "hift.upsample_rates should be a list of whole numbers"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(before: str, after: str, message: str, directory: Path) -> None:
    replace_in(directory / "cosyvoice2.yaml", before, after)

    outcome = outcome_of(directory)

    assert (outcome.exit_code, outcome.reason, outcome.file) == (66, Reason.INCOMPATIBLE_MODEL, "cosyvoice2.yaml")
    assert message in outcome.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "gelu"}, "hidden_act should be silu, but is 'gelu'"),
        ({"use_sliding_window": True}, "use_sliding_window should be False, but is True"),
        ({"rope_scaling": {"type": "yarn"}}, "rope_scaling should be None, but is {'type': 'yarn'}"),
        ({"num_attention_heads": "four"}, "num_attention_heads should be a whole number, but is 'four'"),
    ],
)
def test_a_backbone_that_is_not_computed_here_is_refused(
    change: dict[str, object], message: str, directory: Path
) -> None:
    path = directory / "CosyVoice-BlankEN" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")

    outcome = outcome_of(directory)

    assert (outcome.reason, outcome.file) == (Reason.INCOMPATIBLE_MODEL, "CosyVoice-BlankEN/config.json")
    assert message in outcome.message


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a list",
        "a: [",
        "a: !!python/object/apply:os.system [id]",
        f"a: {nested(200)}",
        "a: " + "x" * (1 << 20),
        "a: \x00",
    ],
    ids=["empty", "a list", "no YAML", "Python", "too deep", "too long", "control characters"],
)
def test_a_document_of_another_form_is_refused(text: str, directory: Path) -> None:
    (directory / "cosyvoice2.yaml").write_text(text, encoding="utf-8")

    outcome = outcome_of(directory)

    assert (outcome.exit_code, outcome.reason) == (66, Reason.INCOMPATIBLE_MODEL)
    assert outcome.message.startswith("cosyvoice2.yaml cannot be read: ")


@pytest.mark.parametrize(
    "spoil",
    [lambda path: path.write_text("{", encoding="utf-8"), lambda path: path.write_text("[]", encoding="utf-8")],
    ids=["no JSON", "a list"],
)
def test_a_backbone_configuration_of_another_form_is_refused(spoil: Callable[[Path], None], directory: Path) -> None:
    spoil(directory / "CosyVoice-BlankEN" / "config.json")

    outcome = outcome_of(directory)

    assert (outcome.reason, outcome.file) == (Reason.INCOMPATIBLE_MODEL, "CosyVoice-BlankEN/config.json")


def test_nothing_in_a_configuration_is_run(directory: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    path = directory / "cosyvoice2.yaml"
    path.write_text(
        f"evil: !apply:pathlib.Path.touch [!new:pathlib.Path ['{proof}']]\n" + path.read_text(encoding="utf-8"),
        encoding="utf-8",
    )

    read = config.read(directory)

    assert read.yaml.target("evil") == "touch"
    assert not proof.exists()
