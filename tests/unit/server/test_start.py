"""The first milliseconds: what is read from the command line before argparse is there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cosyvoice_worker.server.start import begin, engine_arguments, option, preloads


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        ([], "8000"),
        (["--port", "1"], "1"),
        (["--port=2"], "2"),
        (["--port", "1", "--port=2"], "2"),
        (["--port"], "8000"),
        (["--admin-port", "1"], "8000"),
    ],
)
def test_an_option_is_read_as_argparse_would(argv: list[str], value: str) -> None:
    assert option(argv, "--port", "8000") == value


def test_the_engine_is_told_where_things_are() -> None:
    argv = ["--port", "1", "--config=/c/model.json", "--root", "/r", "--no-preload"]

    assert engine_arguments(argv, "/c/current.json") == ["--config", "/c/current.json", "--root", "/r"]


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ({"preload": True}, True),
        ({"preload": False}, False),
        ({}, True),
        ({"warmUp": {"texts": ['"preload": false']}}, True),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_preload_is_found_without_a_parser(engine: dict[str, object], expected: bool, indent: int | None) -> None:
    assert preloads(json.dumps({"engine": engine}, indent=indent).encode()) is expected


def test_help_opens_no_port() -> None:
    start = begin(["--help"])

    assert (start.listener, start.engine, start.error) == (None, None, None)


@pytest.mark.parametrize("port", ["many", "-1", "65536", ""])
def test_a_wrong_port_is_left_to_argparse(port: str) -> None:
    start = begin(["--port", port])

    assert (start.listener, start.engine, start.error) == (None, None, None)


def modules_after(statement: str) -> set[str]:
    """The modules that an interpreter has loaded more after `statement`."""
    script = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_at_first_nothing_is_imported_that_is_not_built_in_or_ours() -> None:
    loaded = modules_after("from cosyvoice_worker.commands import serve")

    built_in = {"_signal", "_socket", "_thread", "errno", "select", "time", "__future__"}
    assert {name for name in loaded if not name.startswith("cosyvoice_worker")} - built_in == set()


def test_the_whole_front_does_without_numpy_and_torch() -> None:
    loaded = modules_after("from cosyvoice_worker.server import serving")

    assert "uvicorn" in loaded
    assert loaded.isdisjoint({"numpy", "torch", "tokenizers", "soundfile"})
