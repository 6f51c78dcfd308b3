"""Mapped weights cannot be written, are resident, and are nearly all that a process holds.

What is tested here lasts as long as its process, or ends it: each case has a process of its own.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PREAMBLE = """
from pathlib import Path
import sys
import torch
from cosyvoice_worker.weights import checkpoint, memory
path = Path(sys.argv[1])
"""


def run(script: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PREAMBLE + script, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def flow(tiny_model_dir: Path) -> Path:
    return tiny_model_dir / "flow.pt"


def test_a_write_into_a_protected_weight_ends_the_process(flow: Path) -> None:
    process = run(
        """
tensors = checkpoint.read(path)
memory.protect([path])
print(float(tensors["input_embedding.weight"][0, 0]), flush=True)
tensors["input_embedding.weight"].zero_()
print("not reached")
""",
        flow,
    )

    assert process.returncode == -signal.SIGSEGV, process.stderr
    assert "not reached" not in process.stdout
    assert float(process.stdout)


def test_populated_weights_are_resident_and_private_memory_does_not_grow(flow: Path) -> None:
    process = run(
        """
def rss(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
tensors = checkpoint.read(path)
memory.protect([path])
anonymous = rss("RssAnon")
resident = rss("RssFile") + rss("RssShmem")
memory.populate([path])
print(rss("RssFile") + rss("RssShmem") - resident, rss("RssAnon") - anonymous)
""",
        flow,
    )

    assert process.returncode == 0, process.stderr
    resident, anonymous = map(int, process.stdout.split())
    assert resident > 0.9 * flow.stat().st_size / 1024
    assert anonymous < 0.01 * flow.stat().st_size / 1024


def test_protected_weights_do_not_count_as_data(flow: Path) -> None:
    process = run(
        """
before = memory.data_bytes()
tensors = checkpoint.read(path)
mapped = memory.data_bytes()
memory.protect([path])
print(mapped - before, memory.data_bytes() - before)
""",
        flow,
    )

    assert process.returncode == 0, process.stderr
    mapped, protected = map(int, process.stdout.split())
    assert mapped >= flow.stat().st_size
    assert protected < 0.1 * flow.stat().st_size


def test_growth_beyond_the_budget_is_refused_and_below_it_is_not(flow: Path) -> None:
    process = run(
        """
memory.limit_growth(64 << 20)
torch.ones(8 << 20)
try:
    torch.ones(64 << 20)
except RuntimeError as error:
    print("refused:", error)
torch.ones(8 << 20)
print("goes on")
""",
        flow,
    )

    assert process.returncode == 0, process.stderr
    assert "refused:" in process.stdout
    assert "allocate memory" in process.stdout
    assert "goes on" in process.stdout
