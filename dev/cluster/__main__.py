"""`python -m dev.cluster build|up|down|status|load|gpus|env`: the local Kubernetes from the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dev.cluster import commands, registry
from dev.cluster.errors import ClusterError
from dev.cluster.plan import DEFAULT_NAME


def parser() -> argparse.ArgumentParser:
    """The command line. Each command is the function of that name in `commands`."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default=DEFAULT_NAME, help="the cluster's name; several can run side by side")
    common.add_argument("--state-dir", type=Path, default=registry.default_state_root(), help="default: %(default)s")
    common.add_argument("--cache-dir", type=Path, default=registry.default_cache(), help="default: %(default)s")
    top = argparse.ArgumentParser(prog="python -m dev.cluster", description="A local Kubernetes, built from source.")
    each = top.add_subparsers(dest="command", required=True)

    each.add_parser("build", parents=[common], help="build the binaries, unless they are in the cache")
    up = each.add_parser("up", parents=[common], help="bring the cluster up; does nothing if it is up")
    up.add_argument("--nodes", type=int, default=2, help="default: %(default)s")
    up.add_argument("--gpus", type=int, help="fake GPUs of each node")
    up.add_argument("--install", action="store_true", help="install missing Debian packages")
    down = each.add_parser("down", parents=[common], help="remove every trace of the cluster but the caches")
    down.add_argument("--purge", action="store_true", help="forget its images, too")
    each.add_parser("status", parents=[common], help="what runs, and where its files are")
    load = each.add_parser("load", parents=[common], help="import docker archives into the nodes that lack them")
    load.add_argument("archives", nargs="+", type=Path, metavar="TAR")
    gpus = each.add_parser("gpus", parents=[common], help="set the number of fake GPUs")
    gpus.add_argument("count", type=int, help="GPUs of each node; 0 takes them away")
    gpus.add_argument("nodes", nargs="*", metavar="NODE", help="default: all nodes")
    each.add_parser("env", parents=[common], help='shell lines for: eval "$(python -m dev.cluster env)"')
    return top


def main(argv: list[str] | None = None) -> int:
    options = parser().parse_args(argv)
    try:
        getattr(commands, options.command)(options)
    except ClusterError as error:
        print(f"dev.cluster {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"dev.cluster {options.command}: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
