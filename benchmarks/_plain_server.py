"""What the worker is compared with: `python -m benchmarks._plain_server PORT [MODEL]`.

Starlette and uvicorn as their documentation has it: import everything, load what has to be loaded, then listen. With a
model it loads and warms up in the same process, by the worker's own functions; without one it only says hello.
"""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from benchmarks._serving import HOST
from cosyvoice_worker.server.local import WARM_UP_TEXT
from cosyvoice_worker.settings import Engine, WarmUp


async def ping(_request: Request) -> PlainTextResponse:
    """Whatever is asked."""
    return PlainTextResponse("pong\n")


def main() -> None:
    """Load if asked to, then serve until killed."""
    port = int(sys.argv[1])
    if len(sys.argv) > 2:
        _load(Path(sys.argv[2]))
    uvicorn.run(Starlette(routes=[Route("/ping", ping)]), host=HOST, port=port, log_level="warning")


def _load(model: Path) -> None:
    """PyTorch here, so that a server without a model does not pay for it."""
    from cosyvoice_worker.engine.load import load  # noqa: PLC0415 - only a server with a model pays for torch
    from cosyvoice_worker.engine.phases import Phases  # noqa: PLC0415 - only a server with a model pays for torch

    settings = Engine(device="cpu", dtype="auto", warm_up=WarmUp(texts=[WARM_UP_TEXT]), load_timeout_seconds=600)
    load(settings, model, model / "voices", Phases(lambda _: None), lambda _: None)


if __name__ == "__main__":
    main()
