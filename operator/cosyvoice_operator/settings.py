"""The operator's configuration: command-line flags, each with an environment variable. All errors are told at once."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cosyvoice_operator import quantity
from cosyvoice_operator.errors import InvalidQuantityError, InvalidSettingsError
from cosyvoice_operator.revision import Policy

ENVIRONMENT_PREFIX = "COSYVOICE_"
LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Checked and typed. `namespaces` empty: all of them. `lease_namespace` None: run without a lease."""

    policy: Policy
    namespaces: tuple[str, ...]
    lease_namespace: str | None
    identity: str
    resync_seconds: float
    workers: int
    health_port: int
    metrics_port: int
    log_level: int


@dataclass(frozen=True, slots=True)
class _Option:
    """One setting. `parse` raises ValueError with what was expected."""

    flag: str
    default: str
    help: str
    parse: Callable[[str], Any]

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.flag.upper().replace("-", "_")

    @property
    def attribute(self) -> str:
        return self.flag.replace("-", "_")


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("a text that is not empty")
    return value.strip()


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _directories(value: str) -> tuple[str, ...]:
    directories = _list(value)
    if any(not path.startswith("/") or ".." in path.split("/") for path in directories):
        raise ValueError("absolute directories without '..', separated by commas")
    return directories


def _quantity(value: str) -> str:
    try:
        positive = quantity.parse(value) > 0
    except InvalidQuantityError:
        positive = False
    if not positive:
        raise ValueError("a positive quantity such as 500m or 5Gi")
    return quantity.canonical(value)


def _port(value: str) -> int:
    if not value.isdecimal() or not 0 < int(value) < 65536:
        raise ValueError("a port from 1 to 65535")
    return int(value)


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86400:
        raise ValueError("seconds from 1 to 86400")
    return seconds


def _count(value: str) -> int:
    if not value.isdecimal() or not 0 < int(value) <= 64:
        raise ValueError("a number from 1 to 64")
    return int(value)


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return value

    return parse


def default_worker_image() -> str:
    """The worker image of this very version, by the name that the project's images have."""
    try:
        return f"cosyvoice-worker:{version('cosyvoice-operator')}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "cosyvoice-worker:dev"


def _options() -> tuple[_Option, ...]:
    return (
        _Option("worker-image", default_worker_image(), "image of workers whose model names none", _text),
        _Option("device", "cuda", "device of models that name none: cuda or cpu", _one_of("cuda", "cpu")),
        _Option("stage-memory", "5Gi", "memory of the staging container, request and limit", _quantity),
        _Option("worker-cpu-request", "500m", "cpu request of workers whose model names none", _quantity),
        _Option("worker-memory-request", "5Gi", "memory request of workers whose model names none", _quantity),
        _Option("worker-memory-limit", "8Gi", "memory limit of workers whose model names none", _quantity),
        _Option("allow-host-path", "", "directories of nodes that hostpath:// may name, by commas", _directories),
        _Option("namespaces", "", "namespaces to look after, by commas (default: all)", _list),
        _Option("lease-namespace", "", "namespace of the lease (default: the pod's own; outside a pod no lease)", str),
        _Option("identity", "", "name of this process in the lease (default: the pod's name)", str),
        _Option("resync-seconds", "300", "how often every model is looked at without cause", _seconds),
        _Option("workers", "8", "models that are worked on at the same time", _count),
        _Option("health-port", "8080", "port of /healthz", _port),
        _Option("metrics-port", "9090", "port of /metrics", _port),
        _Option("log-level", "info", "debug, info, warning or error", _one_of(*LOG_LEVELS)),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag for each setting; its help names the environment variable and the default."""
    for option in _options():
        default = f", default {option.default}" if option.default else ""
        parser.add_argument(f"--{option.flag}", metavar="VALUE", help=f"{option.help} [{option.variable}{default}]")


def load(arguments: argparse.Namespace, environment: Mapping[str, str], *, process: str) -> Settings:
    """Flags over environment over defaults. Raises InvalidSettingsError with one line for each wrong value.

    `process` names this process among all on all machines; it is the identity where no better one is known.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for option in _options():
        flag = getattr(arguments, option.attribute, None)
        text = environment.get(option.variable, option.default) if flag is None else flag
        where = option.variable if flag is None else f"--{option.flag}"
        try:
            values[option.attribute] = option.parse(text)
        except ValueError as error:
            problems.append(f"{where}: expected {error}, not {text!r}")
    problems += _contradictions(values)
    if problems:
        raise InvalidSettingsError(problems)
    pod_namespace, pod_name = environment.get("POD_NAMESPACE", ""), environment.get("POD_NAME", "")
    return Settings(
        policy=Policy(
            worker_image=values["worker_image"],
            device=values["device"],
            stage_memory=values["stage_memory"],
            worker_cpu_request=values["worker_cpu_request"],
            worker_memory_request=values["worker_memory_request"],
            worker_memory_limit=values["worker_memory_limit"],
            allowed_host_paths=values["allow_host_path"],
        ),
        namespaces=values["namespaces"],
        lease_namespace=values["lease_namespace"] or pod_namespace or None,
        identity=values["identity"] or pod_name or process,
        resync_seconds=values["resync_seconds"],
        workers=values["workers"],
        health_port=values["health_port"],
        metrics_port=values["metrics_port"],
        log_level=getattr(logging, values["log_level"].upper()),
    )


def _contradictions(values: Mapping[str, Any]) -> Sequence[str]:
    request, limit = values.get("worker_memory_request"), values.get("worker_memory_limit")
    if request and limit and quantity.parse(request) > quantity.parse(limit):
        return [f"--worker-memory-request {request} is over --worker-memory-limit {limit}: no pod can be made of that"]
    if values.get("health_port") is not None and values.get("health_port") == values.get("metrics_port"):
        return [f"--health-port and --metrics-port are both {values['health_port']}"]
    return []
