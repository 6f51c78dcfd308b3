"""`cosyvoice-worker COMMAND`: finds the command's module and imports nothing else.

`serve` has to answer its first probe within milliseconds. So each command is a module that is imported only when it is
the one asked for, and a command may have an `early(argv)` that runs before even argparse is there.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    "stage": "copy the weights into tmpfs, verified (the pod's init container)",
    "serve": "answer speech requests (the pod's worker container)",
    "synthesize": "speak one text into a file, without a server",
    "make-voice": "make a voice pack from a recording",
    "make-bad": "make a bad model directory of a good one, for a rehearsal",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code (64 to 77 have the meanings of `outcome.EXIT_CODES`, 2 is a wrong command line)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    name = argv[0] if argv else ""
    if name not in COMMANDS:
        return _usage(argv)
    command = importlib.import_module("cosyvoice_worker.commands." + name.replace("-", "_"))
    early = getattr(command, "early", None)
    if early is not None:
        early(argv[1:])

    # After `early`: these imports cost as much as the whole early listener.
    import argparse  # noqa: PLC0415

    from cosyvoice_worker.commands.base import run  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="cosyvoice-worker")
    command.add_parser(parser.add_subparsers(required=True))
    return run(command, parser.parse_args(argv))


def _usage(argv: list[str]) -> int:
    """What there is, on standard output if it was asked for and on standard error (code 2) if not."""
    asked = argv[:1] in (["-h"], ["--help"])
    out = sys.stdout if asked else sys.stderr
    if argv and not asked:
        out.write(f"cosyvoice-worker: unknown command {argv[0]!r}\n")
    out.write("usage: cosyvoice-worker COMMAND [options]\n\ncommands:\n")
    out.writelines(f"  {name:<12} {text}\n" for name, text in COMMANDS.items())
    out.write("\n`cosyvoice-worker COMMAND --help` tells the options of one.\n")
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main())
