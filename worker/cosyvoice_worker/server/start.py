"""The first milliseconds of `serve`: the ports are opened and answered, the engine process is started.

Imports nothing that is not compiled into the interpreter, so it reads its few options from the command line itself;
argparse, which comes later, refuses what is wrong with them.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # has no stub; `signal` itself takes milliseconds, for its enums
import _socket
import os

from cosyvoice_worker import documents
from cosyvoice_worker.names import ADMIN_PORT, API_PORT, CONFIG_PATH, WEIGHTS_ROOT
from cosyvoice_worker.server.early import EarlyListener
from cosyvoice_worker.server.early_pages import ADMIN_PAGES, API_PAGES
from cosyvoice_worker.server.listening import listen
from cosyvoice_worker.server.spawn import Spawned, spawn_engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PORT = 65535

# What the engine is told of the front's own options.
ENGINE_OPTIONS = ("--root", "--voices")


class Start:
    """What was begun. `error` says which port could not be opened; then nothing else was begun.

    `config` is the model.json to serve: the engine was started with it.
    """

    def __init__(self) -> None:
        self.api: _socket.socket | None = None
        self.admin: _socket.socket | None = None
        self.listener: EarlyListener | None = None
        self.engine: Spawned | None = None
        self.config: str | None = None
        self.error: str | None = None


def begin(argv: Sequence[str]) -> Start:
    """Begin to serve as `argv` (the options of `serve`) says."""
    start = Start()
    if "-h" in argv or "--help" in argv:
        return start
    api_port, admin_port = option(argv, "--port", str(API_PORT)), option(argv, "--admin-port", str(ADMIN_PORT))
    if not (is_port(api_port) and is_port(admin_port)):
        return start
    # As process 1 of a container there is no default action: without a handler a signal would be lost.
    for number in (_signal.SIGTERM, _signal.SIGINT):
        _signal.signal(number, _end_at_once)
    host = option(argv, "--host", "") or None
    try:
        port = api_port
        start.api = listen(host, int(port))
        port = admin_port
        start.admin = listen(host, int(port))
    except OSError as error:
        start.error = f"cannot listen on {host or 'any address'}, port {port}: {error}"
        return start
    start.listener = EarlyListener({start.api: API_PAGES, start.admin: ADMIN_PAGES})
    start.listener.start()
    if option(argv, "--model", "") == "":
        start.config = documents.to_serve(option(argv, "--config", CONFIG_PATH), option(argv, "--root", WEIGHTS_ROOT))
        if "--no-preload" not in argv:
            start.engine = _start_engine(argv, start.config)
    return start


def option(argv: Sequence[str], name: str, default: str) -> str:
    """The value of `--name value` or `--name=value`, the last one given as argparse takes it."""
    value = default
    for index, word in enumerate(argv):
        if word == name and index + 1 < len(argv):
            value = argv[index + 1]
        elif word.startswith(name + "="):
            value = word[len(name) + 1 :]
    return value


def is_port(text: str) -> bool:
    """Whether `text` is a port's number; 0 lets the kernel choose one."""
    return text.isdecimal() and int(text) <= MAX_PORT


def engine_arguments(argv: Sequence[str], config: str) -> list[str]:
    """The options that the engine has to know too, with the model.json `config`."""
    values = ((name, option(argv, name, "")) for name in ENGINE_OPTIONS)
    return ["--config", config, *(word for name, value in values if value for word in (name, value))]


def preloads(config: bytes) -> bool:
    """Whether model.json asks for a loaded model before readiness, without a JSON parser.

    Inside a JSON string every quote is escaped, so the text can only be the field itself.
    """
    return b'"preload":false' not in b"".join(config.split())


def _start_engine(argv: Sequence[str], config: str) -> Spawned | None:
    """The engine, as early as can be; None when it is not wanted yet, or when why not is told better later."""
    try:
        with open(config, "rb") as file:
            return spawn_engine(engine_arguments(argv, config)) if preloads(file.read()) else None
    except OSError:
        return None


def _end_at_once(_number: int, _frame: object) -> None:
    """Nothing is being served yet; the engine ends with this process."""
    os._exit(0)
