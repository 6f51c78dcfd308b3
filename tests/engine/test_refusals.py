"""Memory beyond the budget is refused, whoever asks for it, and each refusal is recognised as one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest
import torch

from cosyvoice_worker.engine.limits import BUDGET_VARIABLE, DEFAULT_BUDGET_BYTES, memory_budget, threads
from cosyvoice_worker.engine.refusals import is_out_of_memory
from cosyvoice_worker.outcome import Reason, WorkerError

# In a process of its own, with a budget of 256 MiB: what fits is given, a GiB is refused to each allocator.
SCRIPT = """
import numpy, torch
from cosyvoice_worker.engine.refusals import is_out_of_memory
from cosyvoice_worker.weights.memory import limit_growth

def refused(allocate):
    try:
        allocate()
    except Exception as error:
        return is_out_of_memory(error)
    return False

limit_growth(256 * 2**20)
assert not refused(lambda: torch.zeros(16 * 2**20))
assert refused(lambda: torch.zeros(256 * 2**20))
assert refused(lambda: torch.ones(2**14, 1) @ torch.ones(1, 2**14))
assert refused(lambda: numpy.zeros(2**30, numpy.uint8))
assert refused(lambda: bytearray(2**30))
assert not refused(lambda: torch.zeros(16 * 2**20))
"""


def test_a_gibibyte_beyond_the_budget_is_refused_and_the_process_lives_on():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=300)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("could not create a primitive"), True),
        (RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"), False),
        (OSError(errno.ENOENT, "No such file or directory"), False),
        (ValueError("can't allocate memory"), False),
    ],
)
def test_which_errors_are_refusals(error, expected):
    assert is_out_of_memory(error) is expected


def test_the_budget_can_be_set(monkeypatch):
    monkeypatch.setenv(BUDGET_VARIABLE, "123456")

    assert memory_budget(weights=5) == 123456


def test_a_budget_that_is_no_number_is_an_error_of_the_configuration(monkeypatch):
    monkeypatch.setenv(BUDGET_VARIABLE, "2Gi")

    with pytest.raises(WorkerError) as raised:
        memory_budget(weights=5)

    assert raised.value.outcome.reason is Reason.INVALID_CONFIG
    assert str(raised.value) == f"the environment variable {BUDGET_VARIABLE} is '2Gi', not a number of bytes"


def test_otherwise_the_budget_follows_from_the_containers_limit(monkeypatch):
    monkeypatch.delenv(BUDGET_VARIABLE, raising=False)

    assert 0 < memory_budget(weights=2**40) <= DEFAULT_BUDGET_BYTES


@pytest.mark.parametrize("wanted", ["3", "1"])
def test_threads_can_be_set(monkeypatch, wanted):
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)

    assert threads() == int(wanted)


def test_otherwise_there_are_no_more_threads_than_cpus(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    assert 1 <= threads() <= len(os.sched_getaffinity(0))
