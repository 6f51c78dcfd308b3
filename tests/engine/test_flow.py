"""The flow computes what was recorded of it, module by module and as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cosyvoice_worker.models.cosyvoice2 import config
from cosyvoice_worker.models.cosyvoice2.cfm import MAX_FRAMES, euler_schedule
from cosyvoice_worker.models.cosyvoice2.flow import Prompt, build_flow, flow_sizes
from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.weights.assign import assign
from cosyvoice_worker.weights.build import hollow
from cosyvoice_worker.weights.checkpoint import read
from tests.engine.recorded import exact, names, normal, outputs, token_ids

SHOWN_CHANNELS = 64  # of the encoder's 512, in the recording
FOURTH_CALL = 3  # the estimator's, which was recorded in detail


def ignore():
    """A step that nobody counts."""


@pytest.fixture(scope="module")
def flow(tiny_model_dir):
    tensors = read(tiny_model_dir / "flow.pt")
    module = hollow(lambda: build_flow(flow_sizes(tensors), config.read(tiny_model_dir).flow))
    assign(module, tensors, "flow.pt")
    return module


@pytest.fixture(scope="module")
def prompt():
    return Prompt(
        token=token_ids("golden/v2/flow_ptok", 11),
        mel=normal("golden/v2/flow_pfeat", (1, 22, 80)),
        embedding=normal("golden/v2/flow_spk", (1, 192)),
    )


@pytest.fixture(scope="module")
def no_prompt(prompt):
    return Prompt(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(1, 0, 80), prompt.embedding)


@pytest.fixture(scope="module")
def computed(flow, prompt, no_prompt):
    """Everything that was recorded under flow/, computed here."""
    token, long = token_ids("golden/v2/flow_tok", 30), token_ids("golden/v2/flow_big", 70)
    values = {"token": token, "prompt_token": prompt.token, "prompt_feat": prompt.mel, "embedding": prompt.embedding}
    values |= {"stream_token": long, "rand_noise_head": flow.decoder.rand_noise[0, :, :6]}
    values |= whole_call(flow, token, prompt)
    mel = flow(token[:, :30], no_prompt, streaming=False, finalize=True, on_step=ignore)
    values["mel_no_prompt_30tok"] = mel
    values |= streamed_calls(flow, long, prompt)
    return {f"flow/{name}": value for name, value in values.items()}


def whole_call(flow, token, prompt):
    encoder, estimator = flow.encoder, flow.decoder.estimator
    encoder_modules = {
        "enc_embed": encoder.embed,
        "prelook": encoder.pre_lookahead_layer,
        "enc_l0": encoder.encoders[0],
        "up": encoder.up_layer,
        "up_embed": encoder.up_embed,
        "up_l0": encoder.up_encoders[0],
        "enc_out": encoder,
    }
    whole_modules = {"spk": flow.spk_embed_affine_layer, "enc_proj": flow.encoder_proj}
    estimator_modules = {
        "time": estimator.time_mlp,
        "down_res": estimator.down_blocks[0][0],
        "down_tf0": estimator.down_blocks[0][1][0],
        "down_samp": estimator.down_blocks[0][2],
        "mid_res": estimator.mid_blocks[0][0],
        "mid_tf1": estimator.mid_blocks[1][1][1],
        "up_res": estimator.up_blocks[0][0],
        "up_samp": estimator.up_blocks[0][2],
        "final": estimator.final_block,
        "out": estimator,
    }
    inputs, times, mels = [], [], []
    spy = estimator.register_forward_pre_hook(
        lambda _module, args: (inputs.append(args[0].clone()), times.append(args[1].clone()), None)[-1]
    )
    seen = outputs(
        encoder_modules | whole_modules | estimator_modules,
        lambda: mels.append(flow(token, prompt, streaming=False, finalize=True, on_step=ignore)),
    )
    spy.remove()

    values = {"mel": mels[0], "t": torch.cat(times), "x_after_step0": inputs[1][0, :80]}
    values |= {"z": inputs[0][0, :80], "mu": inputs[0][0, 80:160]}
    values |= {"spks": inputs[0][0, 160:240, 0], "cond": inputs[0][0, 240:]}
    values |= {"est_x": inputs[FOURTH_CALL][0, :80], "est_t": times[FOURTH_CALL].expand(2)}
    values["est_out"] = seen["out"][FOURTH_CALL]
    values |= {f"tap/{name}": seen[name][0] for name in whole_modules}
    for name in encoder_modules:
        first = seen[name][0]
        values[f"tap/{name}"] = first[:, :SHOWN_CHANNELS] if name == "up" else first[..., :SHOWN_CHANNELS]
    for name in estimator_modules.keys() - {"out"}:
        values[f"est_tap/{name}"] = seen[name][FOURTH_CALL]
    values["est_tap/time"] = values["est_tap/time"].expand(2, -1)  # one time for both rows
    return values


def streamed_calls(flow, token, prompt):
    calls = {
        "stream_mel0": (42, True, False),
        "stream_mel1": (67, True, False),
        "stream_mel_last": (70, False, True),
        "stream_mel_last_if_streaming": (70, True, True),
    }
    values = {}

    def run():
        for name, (count, streaming, finalize) in calls.items():
            values[name] = flow(token[:, :count], prompt, streaming=streaming, finalize=finalize, on_step=ignore)

    encoded = outputs({"encoder": flow.encoder}, run)["encoder"][0]
    return values | {"stream_enc0": encoded[..., :48]}


@pytest.mark.parametrize("name", names("flow/"))
def test_equals_the_recorded(name, computed, golden, close):
    expected = golden[name]
    if exact(expected):
        assert np.array_equal(computed[name].numpy(), expected)
    else:
        close(computed[name], expected)


def test_the_unconditional_row_gets_neither_text_nor_speaker_nor_prompt(flow, prompt):
    rows = []
    spy = flow.decoder.estimator.register_forward_pre_hook(lambda _module, args: rows.append(args[0].clone()))

    flow(token_ids("golden/v2/flow_tok", 8), prompt, streaming=False, finalize=True, on_step=ignore)
    spy.remove()

    assert len(rows) == 10
    assert not any(row[1, 80:].any() for row in rows)
    assert all(torch.equal(row[0, :80], row[1, :80]) for row in rows)


def test_the_time_reaches_one_after_the_last_step():
    schedule = euler_schedule(10)

    assert schedule[0][0] == 0.0
    assert sum(schedule[-1]) == pytest.approx(1.0, abs=1e-6)


def test_a_step_can_end_the_work(flow, prompt):
    steps = []

    def stop_at_the_third():
        steps.append(None)
        if len(steps) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        flow(token_ids("golden/v2/flow_tok", 30), prompt, streaming=False, finalize=True, on_step=stop_at_the_third)


def test_more_frames_than_there_is_noise_are_refused(flow, no_prompt):
    mu = torch.zeros(1, 80, MAX_FRAMES + 1)

    with pytest.raises(ValueError, match="at most 15000 mel frames"):
        flow.decoder(mu, torch.zeros(1, 80), mu, streaming=False, on_step=ignore)


def test_building_leaves_the_global_random_state_alone(tiny_model_dir):
    tensors = read(tiny_model_dir / "flow.pt")
    before = torch.get_rng_state()

    hollow(lambda: build_flow(flow_sizes(tensors), config.read(tiny_model_dir).flow))

    assert torch.equal(torch.get_rng_state(), before)


def test_a_missing_tensor_is_named(tiny_model_dir):
    tensors = read(tiny_model_dir / "flow.pt")
    del tensors["encoder.up_layer.conv.weight"]

    with pytest.raises(WorkerError) as failure:
        flow_sizes(tensors)

    assert failure.value.outcome.reason is Reason.MISSING_TENSOR
    assert str(failure.value) == (
        "flow.pt lacks the tensor encoder.up_layer.conv.weight: is it of the same model as the directory's yaml?"
    )


def test_a_tensor_of_another_rank_is_named(tiny_model_dir):
    tensors = read(tiny_model_dir / "flow.pt")
    tensors["encoder.up_layer.conv.weight"] = torch.zeros(2, 3)

    with pytest.raises(WorkerError) as failure:
        flow_sizes(tensors)

    assert failure.value.outcome.reason is Reason.SHAPE_MISMATCH
    assert str(failure.value) == "flow.pt: encoder.up_layer.conv.weight should have 3 dimensions, its shape is [2, 3]"
