"""What the engine's tests share: the recorded results, the tiny model they were recorded on, and their limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from cosyvoice_worker.models.cosyvoice2.load import load, make_tokenizer
from cosyvoice_worker.models.cosyvoice2.model import CosyVoice2
from cosyvoice_worker.text.tokenizer import Tokenizer
from dev.models import tiny

GOLDENS = Path(__file__).parent / "goldens"

# What two correct implementations differ by between torch versions (2.6 and later) at values up to 100.
RTOL = 1e-5
ATOL = 1e-4

Close = Callable[..., None]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """The results were recorded with one thread: the order of float sums depends on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def golden() -> Iterator[Mapping[str, npt.NDArray[Any]]]:
    """Recorded arrays by name, `llm/logits0` for example; read lazily."""
    with np.load(GOLDENS / "golden.npz") as arrays:
        yield arrays


@pytest.fixture(scope="session")
def golden_info() -> dict[str, Any]:
    """Recorded scalars: margins, chunk lengths, which noise was drawn."""
    info: dict[str, Any] = json.loads((GOLDENS / "info.json").read_text(encoding="utf-8"))
    return info


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, written once a session. Read-only: a test that changes a file works on a copy."""
    return tiny.write(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def model(tiny_model_dir: Path) -> CosyVoice2:
    """The tiny model, loaded. Its users leave nothing in it."""
    return load(tiny_model_dir, "cpu", "float32", lambda _phase: None)


@pytest.fixture(scope="session")
def tokenizer(tiny_model_dir: Path) -> Tokenizer:
    """The tiny model's tokenizer."""
    return make_tokenizer(tiny_model_dir)


@pytest.fixture(scope="session")
def close() -> Close:
    """`close(actual, expected, rtol=…, atol=…)`: same shape, and equal within the shared limits unless told others."""

    def check(
        actual: torch.Tensor | npt.NDArray[Any],
        expected: npt.NDArray[Any],
        *,
        rtol: float = RTOL,
        atol: float = ATOL,
    ) -> None:
        values = actual.detach().cpu() if isinstance(actual, torch.Tensor) else torch.from_numpy(actual)
        torch.testing.assert_close(values, torch.from_numpy(expected), rtol=rtol, atol=atol, check_dtype=False)

    return check
