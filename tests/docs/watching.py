"""`kubectl` for a reader who ends a watch (`kubectl get -w`) when he has seen enough; any other command as it is.

Enough is the line of WATCH_UNTIL, or a few seconds where there is none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from tests.docs.output import stable

GLANCE_SECONDS = 3.0
PATIENCE_SECONDS = 150.0


def main(program: str, *words: str) -> int:
    """Run kubectl; 1 when the line that is waited for does not come."""
    if not {"-w", "--watch"} & set(words):
        return subprocess.run([program, *words], check=False).returncode
    until = os.environ.get("WATCH_UNTIL")
    seen = until is None
    with subprocess.Popen([program, *words], stdout=subprocess.PIPE, text=True) as watch:
        timer = threading.Timer(PATIENCE_SECONDS if until else GLANCE_SECONDS, watch.terminate)
        timer.start()
        for line in watch.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            if until is not None and stable(line) == stable(until):
                seen = True
                watch.terminate()
        timer.cancel()
    if not seen:
        sys.stdout.write(f"this line did not come within {PATIENCE_SECONDS:.0f} s: {until}\n")
    return 0 if seen else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
