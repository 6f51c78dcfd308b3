"""docs/when-a-version-is-bad.md: versions of one model, good and bad; one watch records what the page's tables show."""

from __future__ import annotations

from typing import Any

from dev.demo.source import TINY_NAME
from dev.playground import RESOURCES
from tests.docs.pages import snippets
from tests.docs.record import Record
from tests.docs.scene import Scene
from tests.docs.stage import Stage

PAGE = "docs/when-a-version-is-bad.md"
BAD = "bad-version"
# Where a second engine has room beside the first.
ROOM = {**RESOURCES, "limits": {"memory": "3Gi"}}
GOOD_FOLLOWS = "narrator   v1.2.0    v1.3.0   2/2     RolledBack    72s\n"
WATCH = "$ kubectl get cvm narrator -w"


def good_with_two(stage: Stage) -> None:
    """`v1.2.0` serves with two replicas, and there is a copy of its weights in which a tensor is missing."""
    stage.model(replicas=2)
    out = stage.weights / BAD
    if not out.exists():
        stage.reader.type(f"cosyvoice-worker make-bad missing-tensor --model {TINY_NAME} --out {out}")
    stage.reader.words["127d7d4fce"] = stage.status()["activeRevision"]
    stage.record = Record.begin(stage.reader)


def ended(stage: Stage) -> None:
    """The watch is over."""
    if stage.record is not None:
        stage.record.end()
        stage.record = None


def bad_version(stage: Stage) -> None:
    """The spec asks for the bad version, and that has been dealt with."""
    stage.apply_model("v1.3.0", BAD, replicas=2)
    stage.reason("RolledBack")


def two_again(stage: Stage) -> None:
    """Two replicas, after the page has scaled to one."""
    stage.playground.run("scale", "cosyvoicemodel", "narrator", "--replicas=2")


def good_version(stage: Stage) -> None:
    """A good version follows."""
    stage.apply_model("v1.3.1", TINY_NAME, replicas=2)
    stage.ready()


def swapped_in_place(stage: Stage) -> None:
    """The same three versions, with hot swap."""
    spec: dict[str, Any] = {"replicas": 2, "resources": ROOM, "rollout": {"strategy": "HotSwap"}}
    stage.model(**spec)
    stage.apply_model("v1.3.0", BAD, **spec)
    stage.reason("RolledBack")
    stage.apply_model("v1.3.1", TINY_NAME, **spec)
    stage.ready()
    (snippet,) = [one for one in snippets(PAGE) if one.text.startswith(WATCH)]
    if stage.record is not None:
        stage.record.shows(snippet.text.partition("\n")[2])


WHEN_A_VERSION_IS_BAD = Scene(
    world=good_with_two,
    before={
        "kubectl get cvm narrator -w": bad_version,
        "$ kubectl annotate cvm narrator cosyvoice.dev/retry": two_again,
        GOOD_FOLLOWS: good_version,
    },
    instead={WATCH: swapped_in_place},
    end=ended,
    long=True,
)
