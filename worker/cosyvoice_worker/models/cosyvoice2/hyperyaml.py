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
from cosyvoice_worker.regular_files import open_regular

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
# With every alias written out. A node weighs its text and NODE_WEIGHT; the published file has some 15,000.
MAX_WEIGHT = 512 * 1024
NODE_WEIGHT = 32
# Of all references that one value leads to: each may hold two of the next.
MAX_REFERENCES = 1000
# Longer ones are no number of a configuration, and some notations of YAML take a quadratic time to read.
MAX_DIGITS = 40


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
        self._followed = 0

    def get(self, path: str) -> object:
        """The value at `path`, references followed. Raises KeyError for none, ValueError for a bad reference."""
        self._followed = 0
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
        self._followed += 1
        if self._followed > MAX_REFERENCES:
            raise ValueError(f"more than {MAX_REFERENCES} references in one value")
        try:
            if name := whole_reference(node.text):
                return self._get(name, budget - 1)
            return calculate(node.text, lambda name: self._get(name, budget - 1))
        except KeyError as error:
            raise ValueError(f"{node.text} refers to nothing: {error.args[0]}") from error


class _Loader(yaml.SafeLoader):
    """SafeLoader that keeps unknown tags as data and bounds weight and depth, so that no document grows endlessly."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._weight = 0
        self._weights: dict[yaml.Node, int] = {}
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self._depth >= MAX_DEPTH:
            raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep")
        is_alias = self.check_event(yaml.AliasEvent)
        before = self._weight
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if not is_alias:
            self._weight += NODE_WEIGHT + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            self._weights[node] = self._weight - before
        elif node in self._weights:
            self._weight += self._weights[node]
        else:
            raise yaml.YAMLError("an alias stands inside of what it stands for")
        if self._weight > MAX_WEIGHT:
            raise yaml.YAMLError(f"too large, with its aliases written out: more than {MAX_WEIGHT}")
        return node


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_yaml_int(_short(node)))


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_yaml_float(_short(node)))


def _short(node: yaml.ScalarNode) -> yaml.ScalarNode:
    if len(node.value) > MAX_DIGITS:
        raise yaml.YAMLError(f"a number of {len(node.value)} characters{node.start_mark}")
    return node


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
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def read(path: Path) -> HyperYaml:
    """Parse the file. Raises ValueError where it is too large or no YAML mapping, OSError where it cannot be read."""
    with open_regular(path) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    try:
        root: Any = yaml.load(content.decode("utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except Exception as error:
        # Beside YAMLError, whatever PyYAML stumbles over at a tag that lies (`!!bool foo`): KeyError, IndexError …
        raise ValueError(f"not YAML: {str(error) or type(error).__name__}") from error
    if not isinstance(root, dict):
        raise ValueError(f"the document is a {type(root).__name__}, not a mapping")
    return HyperYaml(root)
