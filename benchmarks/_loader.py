"""One loading process: `python -m benchmarks._loader WAY DIRECTORY`. `_loaders` starts it and talks to it.

It says `imported`, loads when it reads a line, says what that took as JSON, and ends when its input does, so that
several can be started at the same moment and hold what they have loaded, as servers would.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from cosyvoice_worker.engine.environment import prepare


def main() -> None:
    """Be that process."""
    way, directory = sys.argv[1], Path(sys.argv[2])
    prepare()  # threads, and no collector: for both ways the same

    from benchmarks._proc import anonymous_bytes  # noqa: PLC0415 - after `prepare`
    from benchmarks._ways import WAYS  # noqa: PLC0415 - after `prepare`

    load = WAYS[way](directory)
    before = anonymous_bytes()
    _say("imported")
    sys.stdin.readline()
    loaded = load()
    after = anonymous_bytes()
    seconds = {"load": loaded.load, "touch": loaded.touch, "cpu": loaded.cpu}
    _say(json.dumps({**seconds, "before": before, "after": after}))
    sys.stdin.read()
    os._exit(0)  # what is left to tidy up takes a third of a second and is nobody's


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
