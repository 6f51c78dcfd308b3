"""Weight norm folded into plain weights."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.weights.fold import STYLES, fold_weight_norm, strip_prefix

CONVOLUTIONS: dict[str, Callable[[], nn.Module]] = {
    "convolution": lambda: nn.Conv1d(3, 5, 4),
    "transposed": lambda: nn.ConvTranspose1d(3, 5, 4),
}


def stored(module: nn.Module, style: tuple[str, str]) -> tuple[dict[str, Tensor], Tensor]:
    """The state of a weight-normed module under the name `conv` in one of the two styles, and its effective weight."""
    normed = weight_norm(module)
    state = {f"conv.{name}": tensor.detach() for name, tensor in normed.state_dict().items()}
    new, wanted = STYLES[0], style
    for before, after in zip(new, wanted, strict=True):
        state[f"conv{after}"] = state.pop(f"conv{before}") * (1.5 if before == new[0] else 1)
    return state, normed.weight.detach() * 1.5


@pytest.mark.parametrize("style", STYLES, ids=["parametrizations", "weight_g"])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_a_folded_weight_is_what_pytorch_computes(kind: str, style: tuple[str, str]) -> None:
    state, expected = stored(CONVOLUTIONS[kind](), style)

    folded = fold_weight_norm(state, "hift.pt")

    assert folded.keys() == {"conv.weight", "conv.bias"}
    torch.testing.assert_close(folded["conv.weight"], expected)


def test_what_has_no_weight_norm_stays_the_same_tensor() -> None:
    state = {"conv.weight": torch.ones(2, 2, 1), "alpha": torch.ones(2)}

    folded = fold_weight_norm(state, "hift.pt")

    assert list(folded) == list(state)
    assert all(folded[name] is state[name] for name in state)


@pytest.mark.parametrize("style", STYLES, ids=["parametrizations", "weight_g"])
@pytest.mark.parametrize("half", [0, 1])
def test_half_a_pair_is_refused_by_the_name_of_the_other(half: int, style: tuple[str, str]) -> None:
    state, _ = stored(nn.Conv1d(2, 2, 1), style)
    del state[f"conv{style[half]}"]

    with pytest.raises(WorkerError, match=f"hift.pt lacks conv{style[half]}, the other half") as raised:
        fold_weight_norm(state, "hift.pt")

    assert raised.value.outcome.reason == Reason.MISSING_TENSOR
    assert raised.value.outcome.tensor == f"conv{style[half]}"


def test_halves_that_do_not_fit_are_refused() -> None:
    state, _ = stored(nn.Conv1d(3, 5, 4), STYLES[1])
    state["conv.weight_g"] = torch.ones(1, 3, 1)

    with pytest.raises(WorkerError) as raised:
        fold_weight_norm(state, "hift.pt")

    assert raised.value.outcome.reason == Reason.SHAPE_MISMATCH
    assert str(raised.value) == "hift.pt: conv.weight_g has the shape [1, 3, 1], its direction needs [5, 1, 1]"


def test_a_wrapper_s_prefix_is_taken_off() -> None:
    state = {"generator.conv.bias": torch.ones(1), "conv.weight": torch.ones(1)}

    assert list(strip_prefix(state, "generator.")) == ["conv.bias", "conv.weight"]
