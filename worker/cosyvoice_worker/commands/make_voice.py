"""`cosyvoice-worker make-voice`: a voice pack from a recording, by the model's own ONNX files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cosyvoice_worker.voices import configmap, files
from cosyvoice_worker.voices.checks import check_name
from cosyvoice_worker.voices.limits import SUFFIX

if TYPE_CHECKING:
    from cosyvoice_worker.commands.base import Subparsers

_EPILOG = """\
The pack speaks once it lies in the model's voices/ or in the ConfigMap MODEL-voices beside the CosyVoiceModel:

  cosyvoice-worker make-voice --model DIR --audio prompt.wav --text "What is said in it." \\
      --configmap narrator ann | kubectl apply --server-side --field-manager=voice-ann -f -

With a field manager of its own each voice can be applied and taken away without the others.
"""


def add_parser(subparsers: Subparsers) -> None:
    """The command's options."""
    parser = subparsers.add_parser(
        "make-voice",
        help="make a voice pack from a recording",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="the voice's name: a-z, 0-9 and -")
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="model directory with its ONNX files")
    parser.add_argument("--audio", required=True, type=Path, metavar="FILE", help="recording: 0.5 to 30 s, >= 16 kHz")
    parser.add_argument("--text", required=True, help="what is said in it; empty for a cross-lingual voice")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where NAME.safetensors goes, replacing one that is there (default: here)",
    )
    parser.add_argument("--configmap", metavar="MODEL", help="print the ConfigMap of this CosyVoiceModel instead")
    parser.add_argument("--namespace", help="with --configmap: the CosyVoiceModel's namespace")


def run(args: argparse.Namespace) -> int:
    """Make the pack; write it, print its ConfigMap, or both. Raises VoiceError."""
    from cosyvoice_worker.voices.audio import read_recording  # noqa: PLC0415 - numpy, after the options were right
    from cosyvoice_worker.voices.make import make_pack  # noqa: PLC0415

    check_name(args.name)
    target = None if args.configmap is None else configmap.Target(args.configmap, args.namespace)
    pack = make_pack(args.model, read_recording(args.audio), args.text)
    if target is not None:
        sys.stdout.write(configmap.manifest(target, args.name, pack))
    if target is None or args.out is not None:
        path = (args.out or Path()) / (args.name + SUFFIX)
        files.write(pack, path)
        sys.stderr.write(f"{path}: {pack.tokens} speech tokens, {pack.seconds:.2f} s\n")
    return 0
