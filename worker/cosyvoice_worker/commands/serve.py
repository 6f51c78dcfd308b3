"""`cosyvoice-worker serve`: the pod's worker container. Answers at once, loads the model, speaks.

What `early` begins goes on while this process is still reading its own modules.
"""

from __future__ import annotations

from cosyvoice_worker.server.start import MAX_PORT, Start, begin, is_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from cosyvoice_worker.commands.base import Subparsers

_begun: list[Start] = []


def early(argv: Sequence[str]) -> None:
    """Open the ports and start the engine."""
    _begun.append(begin(argv))


def add_parser(subparsers: Subparsers) -> None:
    """The command's options. `start.begin` reads some of them too: no abbreviations."""
    from pathlib import Path  # noqa: PLC0415 - this module has to be light when it is imported

    from cosyvoice_worker import names  # noqa: PLC0415
    from cosyvoice_worker.server.limits import Limits  # noqa: PLC0415

    limits = Limits()
    parser = subparsers.add_parser("serve", help="answer speech requests", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--config", type=Path, default=Path(names.CONFIG_PATH), metavar="FILE", help="model.json (%(default)s)")
    add("--root", type=Path, default=Path(names.WEIGHTS_ROOT), metavar="DIR", help="staged weights (%(default)s)")
    add("--voices", type=Path, default=Path(names.VOICES_CONFIG_PATH), metavar="DIR", help="packs (%(default)s)")
    add("--api-keys", type=Path, metavar="DIR", help="a file for each key that is taken (default: none is needed)")
    add("--termination-log", default=names.TERMINATION_LOG, metavar="FILE", help="default %(default)s")
    add("--host", metavar="ADDRESS", help="default: every address, IPv6 and IPv4")
    add("--port", type=_port, default=names.API_PORT, help="speech, default %(default)s")
    add("--admin-port", type=_port, default=names.ADMIN_PORT, help="status and metrics, default %(default)s")
    add("--no-preload", action="store_true", help="ready at once; load at the first request")
    add("--request-seconds", type=float, default=limits.request_seconds, help="a request's time (%(default)g)")
    add("--drain-seconds", type=float, default=limits.drain_seconds, help="time to finish in (%(default)g)")
    add("--model", type=Path, metavar="DIR", help="serve this directory, without model.json and staging")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="with --model (%(default)s)")
    add(
        "--dtype",
        choices=("auto", "float32", "float16", "bfloat16"),
        default="auto",
        help="with --model (%(default)s)",
    )
    add("--load-seconds", type=int, default=600, help="with --model: time to load in (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop (0) or until the engine fails for good (its exit code)."""
    from cosyvoice_worker.ending import conclude  # noqa: PLC0415
    from cosyvoice_worker.server.serving import serve  # noqa: PLC0415

    return conclude(serve(args, _begun.pop()), args.termination_log)


def _port(text: str) -> int:
    import argparse  # noqa: PLC0415 - this module has to be light when it is imported

    if not is_port(text):
        raise argparse.ArgumentTypeError(f"expected 0 to {MAX_PORT}, got {text!r}")
    return int(text)
