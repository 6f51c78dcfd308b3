"""`cosyvoice-worker`: finds the command, imports nothing else, and says what there is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cosyvoice_worker.__main__ import COMMANDS


def worker(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cosyvoice_worker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("arguments", [["-h"], ["--help"]])
def test_help_lists_the_commands(arguments):
    done = worker(*arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")] == list(COMMANDS)


@pytest.mark.parametrize("arguments", [[], ["speak"], ["--verbose"]])
def test_anything_else_is_a_wrong_command_line(arguments):
    done = worker(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: cosyvoice-worker COMMAND" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_its_options_without_torch(command):
    script = (
        "import sys; from cosyvoice_worker.__main__ import main\n"
        f"try: main([{command!r}, '--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: cosyvoice-worker {command}" in done.stdout


def test_stage_loads_neither_torch_nor_numpy():
    script = (
        "import sys; import cosyvoice_worker.commands.stage\n"
        "print([name for name in ('torch', 'numpy', 'yaml', 'asyncio', 'safetensors') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "[]\n"
