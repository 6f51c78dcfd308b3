"""`cosyvoice-operator run`: in a cluster under its service account, outside of one with KUBECONFIG."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from cosyvoice_operator import logs, settings, signals
from cosyvoice_operator.errors import InvalidSettingsError
from cosyvoice_operator.settings import Settings

EXIT_USAGE = 64
EXIT_LOST = 1

SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 after SIGTERM or SIGINT, 64 for a wrong configuration, 1 where the lease or a watch was lost."""
    arguments = _parser().parse_args(argv)
    process = f"{platform.node()}-{os.getpid()}"
    in_cluster = not os.environ.get("KUBECONFIG") and SERVICE_ACCOUNT_TOKEN.exists()
    try:
        configuration = settings.load(arguments, os.environ, process=process)
        logs.configure(configuration.log_level)
        return asyncio.run(_run(configuration, in_cluster=in_cluster))
    except InvalidSettingsError as error:
        for problem in error.problems:
            print(f"cosyvoice-operator: {problem}", file=sys.stderr)  # noqa: T201 - for a person who just typed it
        return EXIT_USAGE


async def _run(configuration: Settings, *, in_cluster: bool) -> int:
    from cosyvoice_operator import app  # noqa: PLC0415 - kopf takes a second to import; a wrong flag should not wait

    stop = asyncio.Event()
    signals.listen(stop)
    return 0 if await app.run(configuration, stop, in_cluster=in_cluster) else EXIT_LOST


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cosyvoice-operator", description="Runs CosyVoiceModel objects on Kubernetes."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="watch and reconcile until told to stop")
    settings.add_arguments(run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
