"""Log lines are JSON objects with a context."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def lines_of(script: str) -> list[dict[str, Any]]:
    """What a program of its own logs."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_a_line_has_time_level_message_context_and_the_fields_of_its_own():
    (line,) = lines_of(
        "import logging, pathlib; from cosyvoice_worker import logs\n"
        "logs.configure('stage', model='narrator', revision='3f9a1c0b7d')\n"
        "logging.getLogger('x').info('staged %d files', 3, extra={'bytes': 5, 'path': pathlib.Path('/a')})"
    )

    assert line.pop("time").endswith("Z")
    line.pop("pod", None)
    assert line == {
        "level": "info",
        "logger": "x",
        "message": "staged 3 files",
        "program": "stage",
        "model": "narrator",
        "revision": "3f9a1c0b7d",
        "bytes": 5,
        "path": "/a",
    }


def test_nothing_in_a_line_is_obeyed_by_a_terminal():
    told = "Grüße 中文 \x1b[2J \x9b2J \u202e \u2028 \udcff \x7f"
    script = f"import logging; from cosyvoice_worker import logs\nlogs.configure('stage'); logging.info({told!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    text = done.stderr.decode("utf-8")

    assert json.loads(text)["message"] == told
    assert text.removesuffix("\n").isprintable()
    assert "Grüße 中文" in text


def test_configuring_again_replaces_the_context_and_not_adds_a_handler():
    lines = lines_of(
        "import logging; from cosyvoice_worker import logs\n"
        "logs.configure('stage'); logging.info('first'); logging.debug('never')\n"
        "logs.configure('stage', model='narrator'); logging.info('second')"
    )

    assert [(line["message"], line.get("model")) for line in lines] == [("first", None), ("second", "narrator")]


def test_a_traceback_stays_in_its_line():
    (line,) = lines_of(
        "import logging; from cosyvoice_worker import logs\n"
        "logs.configure('engine')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: logging.exception('failed')"
    )

    assert line["level"] == "error"
    assert line["traceback"].endswith("ZeroDivisionError: division by zero")
