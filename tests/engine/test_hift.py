"""The vocoder computes what was recorded of it, module by module and as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cosyvoice_worker.models.cosyvoice2 import config
from cosyvoice_worker.models.cosyvoice2.hift import build_hift, hift_sizes
from cosyvoice_worker.models.cosyvoice2.source import GeneratorNoise
from cosyvoice_worker.weights.assign import assign
from cosyvoice_worker.weights.build import hollow
from cosyvoice_worker.weights.checkpoint import read
from cosyvoice_worker.weights.fold import fold_weight_norm
from tests.engine.recorded import RecordedNoise, exact, names, normal, outputs

SHOWN_STEPS = 200

# From our own pitch: its last bits become phase, which is a running sum.
FROM_OWN_PITCH = {
    "hift/f0": 1e-3,
    "hift/sine_head": 1e-3,
    "hift/s": 1e-3,
    "hift/s_cache": 1e-3,
    "hift/wav": 5e-3,
    "hift/wav_cache": 5e-3,
}


@pytest.fixture(scope="module")
def hift(tiny_model_dir):
    tensors = fold_weight_norm(read(tiny_model_dir / "hift.pt"), "hift.pt")
    module = hollow(lambda: build_hift(hift_sizes(tensors), config.read(tiny_model_dir).hift))
    assign(module, tensors, "hift.pt")
    return module


@pytest.fixture(scope="module")
def mel():
    return normal("golden/v2/mel", (1, 80, 24), 1.3)


@pytest.fixture(scope="module")
def computed(hift, mel, golden):
    """Everything that was recorded under hift/, computed here; what follows the excitation, from the recorded one."""
    values = {"mel": mel}
    samples, source = hift(mel, RecordedNoise("hift"))
    values |= {"wav": samples, "s": source}
    pitch = hift.f0_predictor(mel)
    values |= {"f0": pitch, "f0_dtype_is_f64": torch.tensor([pitch.dtype == torch.float64])}
    values["sine_head"] = hift.m_source.sines(pitch, RecordedNoise("hift"))[:, :1500]

    recorded_source = torch.from_numpy(golden["hift/s"])
    values["s_stft_head"] = hift.stft(recorded_source)[:, :, :SHOWN_STEPS]
    taps = {"conv_pre": hift.conv_pre, "res0": hift.resblocks[0], "conv_post": hift.conv_post}
    for stage in range(3):
        taps[f"up{stage}"] = hift.ups[stage]
        taps[f"srcdown{stage}"] = hift.source_downs[stage]
        taps[f"srcres{stage}"] = hift.source_resblocks[stage]
    seen = outputs(taps, lambda: hift.decode(mel, recorded_source))
    values |= {f"tap/{name}": calls[0][:, :, :SHOWN_STEPS] for name, calls in seen.items()}
    spectrum = seen["conv_post"][0]
    values["istft_head"] = hift.istft(spectrum[:, :9].exp(), spectrum[:, 9:].sin())[:, :1000]

    magnitude, phase = normal("golden/istft_mag", (1, 9, 40), 1.0), normal("golden/istft_phase", (1, 9, 40))
    values |= {"istft_mag_in": (3 * magnitude).exp(), "istft_phase_in": 4 * phase}
    values["istft_of_in"] = hift.istft(values["istft_mag_in"], values["istft_phase_in"])

    values["cache_source"] = recorded_source[:, :, : 5 * hift.hop] * 0.5
    samples, source = hift(mel[:, :, 4:], RecordedNoise("hift_cache"), values["cache_source"])
    values |= {"wav_cache": samples[:, :6000], "s_cache": source[:, :, :4000]}

    values["phase_f0"] = torch.tensor([[[200.0, 200.0, 200.0, 3.0, 200.0, 200.0]]])
    values["phase_sines"] = hift.m_source.sines(values["phase_f0"][0], silence)
    return {f"hift/{name}": value for name, value in values.items()}


def silence(samples, harmonics):
    return torch.zeros(1, samples, harmonics)


@pytest.mark.parametrize("name", names("hift/"))
def test_equals_the_recorded(name, computed, golden, close):
    expected = golden[name]
    if exact(expected):
        assert np.array_equal(computed[name].numpy(), expected)
    elif name in FROM_OWN_PITCH:
        close(computed[name], expected, atol=FROM_OWN_PITCH[name])
    else:
        close(computed[name], expected)


def test_samples_from_the_recorded_excitation_equal_the_recorded(hift, mel, golden, close):
    with torch.inference_mode():
        samples = hift.decode(mel, torch.from_numpy(golden["hift/s"]))

    close(samples, golden["hift/wav"])


@pytest.mark.parametrize("frames", [1, 2, 7, 50])
def test_every_frame_becomes_a_hop_of_samples_within_the_limit(hift, frames):
    mel = normal("hift/length", (1, 80, frames), 5.0)

    samples, source = hift(mel, GeneratorNoise(torch.Generator().manual_seed(0)))

    assert hift.hop == 480
    assert samples.shape == (1, frames * hift.hop)
    assert source.shape == (1, 1, frames * hift.hop)
    assert samples.abs().max() <= 0.99


def test_the_same_generator_seed_gives_the_same_samples(hift, mel):
    first, _ = hift(mel, GeneratorNoise(torch.Generator().manual_seed(7)))
    second, _ = hift(mel, GeneratorNoise(torch.Generator().manual_seed(7)))
    other, _ = hift(mel, GeneratorNoise(torch.Generator().manual_seed(8)))

    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_an_unvoiced_frame_is_noise_alone(hift):
    pitch = torch.tensor([[9.9, 200.0]])

    sines = hift.m_source.sines(pitch, silence)

    assert not sines[:, : hift.hop].any()
    assert sines[:, hift.hop :].abs().max() == pytest.approx(0.1, abs=1e-3)


def test_a_steady_pitch_has_its_frequency(hift):
    frames, hertz = 51, 200.0

    first_harmonic = hift.m_source.sines(torch.full((1, frames), hertz), silence)[0, :, 0]

    # The phase stands still in the first and the last half frame.
    seconds = (frames - 1) * hift.hop / 24000
    rising = ((first_harmonic[:-1] < 0) & (first_harmonic[1:] >= 0)).sum().item()
    assert rising == pytest.approx(hertz * seconds, abs=1)


def test_each_residual_block_is_a_step(hift):
    steps = []

    hift(torch.zeros(1, 80, 4), GeneratorNoise(torch.Generator().manual_seed(0)), on_step=lambda: steps.append(None))

    assert len(steps) == len(hift.resblocks)
