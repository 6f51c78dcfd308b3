"""Build, push and run the images: `python -m dev.images --help`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from dev.images import builder, delivery, inside, references, sandbox, sbom, weight
from dev.images.bundle import Mount
from dev.images.errors import ImageError
from dev.images.layout import Layout, default_layout


def main() -> int:
    """Parse the command line and do what it says; the exit code."""
    arguments = _parser().parse_args()
    try:
        return int(arguments.action(default_layout(), arguments))
    except ImageError as error:
        print(f"dev.images: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev.images", description=__doc__)
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    build = actions.add_parser("build", help="build the images and import them into the local cluster if it runs")
    build.add_argument("kinds", nargs="*", choices=[*references.KINDS, references.CUDA_WORKER, []], metavar="KIND")
    build.description = (
        "KIND: operator, worker (both, where none is named), or worker-cuda, the worker for NVIDIA GPUs."
    )
    build.add_argument("--base", action="store_true", help="start afresh, from the newest Debian packages")
    build.add_argument("--weigh", action="store_true", help="also tell their sizes, unpacked and compressed")
    build.set_defaults(action=_build)

    push = actions.add_parser("push", help="push what was built last to the registry of IMAGE_REGISTRY")
    push.set_defaults(action=_push)

    shown = actions.add_parser("refs", help="print the references of what was built last, as JSON")
    shown.set_defaults(action=_refs)

    bill = actions.add_parser("sbom", help="write what the images built last are made of, as SPDX")
    bill.add_argument("--folder", type=Path, default=Path("out"), help="default %(default)s")
    bill.set_defaults(action=_sbom)

    run = actions.add_parser("run", help="run a command in an image, as a pod would: `run worker -- sh`")
    run.add_argument("kind", choices=references.KINDS)
    run.add_argument("command", nargs="+", metavar="WORD")
    run.add_argument("--mount", action="append", default=[], type=Mount.parse, metavar="SOURCE:TARGET[:rw]")
    run.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    run.set_defaults(action=_run)

    test = actions.add_parser("test", help="run pytest inside the worker image: `test -- -q tests/engine`")
    test.add_argument("words", nargs="+", metavar="WORD")
    test.set_defaults(action=_test)
    return parser


def _build(layout: Layout, arguments: argparse.Namespace) -> int:
    kinds = arguments.kinds or references.KINDS
    built = builder.build(layout, kinds, renew_base=arguments.base)
    for result in built:
        print(result)
    for result in built:
        if result.image.name != references.repository(references.CUDA_WORKER):
            print(delivery.import_into_cluster(layout, result.image), flush=True)
    for result in built if arguments.weigh else ():
        print(f"{result.image.reference}: {weight.weigh(layout, result.image.id)}", flush=True)
    return 0


def _push(layout: Layout, _arguments: argparse.Namespace) -> int:
    registry = os.environ.get("IMAGE_REGISTRY")
    if not registry:
        raise ImageError("set IMAGE_REGISTRY to where the images go, as in registry.example.com/team")
    print(json.dumps(asdict(delivery.push(layout, registry)), indent=2))
    return 0


def _refs(layout: Layout, _arguments: argparse.Namespace) -> int:
    print(json.dumps(asdict(references.read(layout.references)), indent=2))
    return 0


def _sbom(layout: Layout, arguments: argparse.Namespace) -> int:
    for kind in references.KINDS:
        print(sbom.write(layout, kind, arguments.folder), flush=True)
    return 0


def _run(layout: Layout, arguments: argparse.Namespace) -> int:
    env = dict(word.split("=", maxsplit=1) for word in arguments.env)
    return sandbox.run_in_terminal(layout, arguments.kind, arguments.command, mounts=arguments.mount, env=env)


def _test(layout: Layout, arguments: argparse.Namespace) -> int:
    done = inside.run_tests(layout, arguments.words)
    print(done.stdout, done.stderr, sep="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
