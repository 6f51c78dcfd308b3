"""Writes what is generated: docs/api.md, every field of CosyVoiceModel, from the CRD; and the parts of the chart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from cosyvoice_worker._version import __version__
from dev import chart, metrics_page
from dev.dashboard import grafana

ROOT = Path(__file__).parents[1]
CRD = ROOT / "crds" / "cosyvoicemodels.yaml"
API_REFERENCE = ROOT / "docs" / "api.md"
DASHBOARD = ROOT / "charts" / "cosyvoice" / "files" / "dashboard.json"

HEAD = """# CosyVoiceModel

`cosyvoice.dev/v1alpha1`, short name `cvm`. Generated from `crds/cosyvoicemodels.yaml` by `make generate`;
`kubectl explain cvm.spec` says the same.
"""


def main() -> None:
    """Regenerate every file."""
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")


def generated() -> dict[Path, str]:
    """Every generated file, and what belongs into it."""
    crd = CRD.read_text(encoding="utf-8")
    return {
        API_REFERENCE: api_reference(yaml.safe_load(crd)),
        DASHBOARD: grafana.document(),
        **metrics_page.generated(),
        **chart.generated(crd, __version__),
    }


def api_reference(crd: dict[str, Any]) -> str:
    """The reference as Markdown: one table for the spec, one for the status."""
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    parts = [HEAD]
    for section in ("spec", "status"):
        node = schema["properties"][section]
        parts.append(
            f"\n## {section}\n\n{node['description']}\n\n| field | type | default | meaning |\n|---|---|---|---|\n"
        )
        parts += [f"| `{path}` | {kind} | {default} | {text} |\n" for path, kind, default, text in rows(node, "")]
    return "".join(parts)


def rows(node: dict[str, Any], path: str) -> Iterator[tuple[str, str, str, str]]:
    """(path, type, default, meaning) of every field below `node`, in the schema's order."""
    required = set(node.get("required", ()))
    for name, field in node.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        default = "required" if name in required else _default(field)
        yield here, _kind(field), default, field.get("description", "").replace("|", "\\|")
        yield from rows(field, here)
        if "items" in field:
            yield from rows(field["items"], f"{here}[]")


def _kind(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}"
    if field.get("type") == "object" and "additionalProperties" in field:
        return f"map to {_kind(field['additionalProperties'])}"
    return str(field.get("type", ""))


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default is None or default == {}:
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    main()
