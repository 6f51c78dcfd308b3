"""`/docs`: the API's description as one page without scripts, made from the OpenAPI document."""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping
from typing import Any

import msgspec

from cosyvoice_worker.server import openapi

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code,pre{background:#8882;border-radius:.25rem;padding:.1rem .3rem}pre{padding:.75rem;overflow:auto}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;"
    "border-bottom:1px solid #8884}"
)
_EXAMPLE = """curl -sS http://localhost:8000/v1/audio/speech \\
  -d '{"input": "Hello from CosyVoice.", "response_format": "wav"}' -o hello.wav"""


@functools.cache
def page() -> bytes:
    """The page."""
    document: Mapping[str, Any] = openapi.document()
    parts = [
        f"<h1>{_text(document['info']['title'])}</h1><p>{_text(document['info']['description'])} ",
        'The same as <a href="/openapi.json">OpenAPI</a>.</p>',
        f"<pre>{_text(_EXAMPLE)}</pre>",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(_operation(method.upper(), path, operation, document["components"]["schemas"]))
    body = "".join(parts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_text(document["info"]["title"])}</title>'
        f"<style>{_STYLE}</style><body>{body}</body></html>"
    ).encode()


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]]) -> str:
    heading = f"<h2><code>{method} {_text(path)}</code></h2><p>{_text(operation['summary'])}</p>"
    if "requestBody" in operation:
        reference: str = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        heading += _fields(schemas[reference.rpartition("/")[2]])
    responses = [(code, response["description"]) for code, response in operation["responses"].items()]
    return heading + _table(("Status", "Meaning"), responses)


def _fields(schema: Mapping[str, Any]) -> str:
    rows = []
    for name, field in schema["properties"].items():
        default = (
            "required" if name in schema.get("required", ()) else msgspec.json.encode(field.get("default")).decode()
        )
        rows.append((name, default, _described(field)))
    return _table(("Field", "Default", "Meaning"), rows)


def _described(field: Mapping[str, Any]) -> str:
    """The description, which stands inside where a field may also be null."""
    inner = next((kind for kind in field.get("anyOf", ()) if "description" in kind), field)
    return str(inner.get("description", ""))


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    cells = "".join(f"<th>{_text(name)}" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{_text(cell)}" for cell in row) for row in rows)
    return f"<table><tr>{cells}{lines}</table>"


def _text(value: object) -> str:
    return html.escape(str(value))
