"""Reads a HyperPyYAML configuration as data: nothing in it is imported, called or evaluated.

`!new:`, `!name:` and `!apply:` say which Python object the format's own loader would make. Here they stay what they
are, a target and its arguments, whatever the target; only references are followed, and only where a value is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cosyvoice_worker.models.cosyvoice2.arithmetic import calculate, whole_reference

MAX_BYTES = 256 * 1024
MAX_ALIASES = 64
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Tagged:
    """A node with a tag that YAML does not know: `!new:a.b.C` has the tag "!new:a.b.C" and its arguments as value."""

    tag: str
    value: object

    @property
    def target(self) -> str:
        """The last name of what the tag points at: "C" for `!new:a.b.C`."""
        return self.tag.rpartition(":")[2].rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Reference:
    """`!ref <name>`, or arithmetic over such names."""

    text: str


class HyperYaml:
    """A parsed configuration. Values are asked for by their path of keys, `flow.encoder.num_blocks`."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root

    def get(self, path: str) -> object:
        """The value at `path`, references followed. Raises KeyError for none, ValueError for a bad reference."""
        return self._get(path, MAX_DEPTH)

    def target(self, path: str) -> str | None:
        """The class or function that the node at `path` names, without its module; None for an untagged node."""
        value = self.get(path)
        return value.target if isinstance(value, Tagged) else None

    def _get(self, path: str, budget: int) -> object:
        node: object = self._root
        for key in path.split("."):
            mapping = node.value if isinstance(node, Tagged) else node
            if not isinstance(mapping, Mapping) or key not in mapping:
                raise KeyError(path)
            node = self._follow(mapping[key], budget)
        return node

    def _follow(self, node: object, budget: int) -> object:
        if not isinstance(node, Reference):
            return node
        if not budget:
            raise ValueError(f"references lead in a circle: {node.text}")
        try:
            if name := whole_reference(node.text):
                return self._get(name, budget - 1)
            return calculate(node.text, lambda name: self._get(name, budget - 1))
        except KeyError as error:
            raise ValueError(f"{node.text} refers to nothing: {error.args[0]}") from error


class _Loader(yaml.SafeLoader):
    """SafeLoader that keeps unknown tags as data and bounds aliases and depth, so that no document grows endlessly."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._aliases = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._aliases += self.check_event(yaml.AliasEvent)
        if self._aliases > MAX_ALIASES:
            raise yaml.YAMLError(f"more than {MAX_ALIASES} aliases")
        if self._depth >= MAX_DEPTH:
            raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def _construct_tagged(loader: _Loader, suffix: str, node: yaml.Node) -> object:
    if isinstance(node, yaml.ScalarNode):
        text = str(loader.construct_scalar(node))
        return Reference(text) if suffix == "ref" else Tagged(f"!{suffix}", text)
    if isinstance(node, yaml.SequenceNode):
        return Tagged(f"!{suffix}", loader.construct_sequence(node, deep=True))
    if isinstance(node, yaml.MappingNode):
        return Tagged(f"!{suffix}", loader.construct_mapping(node, deep=True))
    raise yaml.YAMLError(f"unknown kind of node at {node.start_mark}")


_Loader.add_multi_constructor("!", _construct_tagged)


def read(path: Path) -> HyperYaml:
    """Parse the file. Raises ValueError where it is too large or no YAML mapping, OSError where it cannot be read."""
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ValueError(f"{size} bytes, more than {MAX_BYTES}")
    try:
        root: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not YAML: {error}") from error
    if not isinstance(root, dict):
        raise ValueError(f"the document is a {type(root).__name__}, not a mapping")
    return HyperYaml(root)
