"""`python -m cosyvoice_worker.engine --fd N`: what the front starts. Not for users."""

from __future__ import annotations

import argparse
from pathlib import Path

from cosyvoice_worker.engine.process import run
from cosyvoice_worker.names import CONFIG_PATH, VOICES_CONFIG_PATH, WEIGHTS_ROOT


def main() -> None:
    """Parse the command line and be an engine."""
    parser = argparse.ArgumentParser(prog="python -m cosyvoice_worker.engine", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the inherited end of the channel's socket pair")
    parser.add_argument("--config", type=Path, default=Path(CONFIG_PATH))
    parser.add_argument("--root", type=Path, default=Path(WEIGHTS_ROOT), help="where the weights are staged")
    parser.add_argument("--voices", type=Path, default=Path(VOICES_CONFIG_PATH), help="packs beside the model's own")
    parser.add_argument("--memory-bytes", type=int, help="what a second engine may hold for itself")
    args = parser.parse_args()
    run(args.fd, args.config, args.root, args.voices, memory_bytes=args.memory_bytes)


main()
