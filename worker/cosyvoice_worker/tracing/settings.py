"""Where traces go: OpenTelemetry's own environment variables.

https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and …/configuration/sdk-environment-variables/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
CERTIFICATE = "OTEL_EXPORTER_OTLP_CERTIFICATE"
SERVICE_NAME = "OTEL_SERVICE_NAME"
RESOURCE_ATTRIBUTES = "OTEL_RESOURCE_ATTRIBUTES"

PROTOCOL = "http/json"
TRACES_PATH = "/v1/traces"


class TracingError(Exception):
    """A variable cannot be used; the message names it and says what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingSettings:
    """`endpoint` is a whole http or https URL, `certificate` a file of authorities to trust instead of the system's."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: str | None = None
    resource: Mapping[str, str] = field(default_factory=dict)


def from_environment(environment: Mapping[str, str], resource: Mapping[str, str]) -> TracingSettings:
    """What the variables ask for. `resource` is what this program says of itself; they go before it.

    Raises TracingError.
    """
    for name in PROTOCOLS:
        if environment.get(name, PROTOCOL) != PROTOCOL:
            raise TracingError(f"{name} is {environment[name]!r}; traces are sent as {PROTOCOL}, and not otherwise")
    name = TRACES_ENDPOINT if environment.get(TRACES_ENDPOINT) else ENDPOINT
    endpoint = environment.get(name, "")
    if not _is_address(endpoint):
        raise TracingError(f"{name} is {endpoint!r}; expected an address such as http://collector:4318")
    headers = _pairs(environment, HEADERS)
    for key, value in headers.items():
        if not (key + value).isascii() or not (key + value).isprintable():
            raise TracingError(f"{HEADERS} gives {key!r} a value that no header can have")
    named = _pairs(environment, RESOURCE_ATTRIBUTES)
    if environment.get(SERVICE_NAME):
        named["service.name"] = environment[SERVICE_NAME]
    return TracingSettings(
        endpoint=endpoint if name == TRACES_ENDPOINT else endpoint.rstrip("/") + TRACES_PATH,
        headers=headers,
        certificate=environment.get(CERTIFICATE) or None,
        resource={**resource, **named},
    )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are no address, a port that is no number
        return False


def _pairs(environment: Mapping[str, str], name: str) -> dict[str, str]:
    """`key=value,key=value`, values percent-encoded."""
    pairs = [pair.partition("=") for pair in environment.get(name, "").split(",") if pair.strip()]
    if not all(key.strip() and equals for key, equals, _ in pairs):
        raise TracingError(f"{name} is no list of key=value, separated by commas")
    return {key.strip(): unquote(value.strip()) for key, _, value in pairs}
