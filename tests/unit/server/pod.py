"""What a front finds around it in a pod that can be told to serve another revision: the order and the stager's work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cosyvoice_worker.staging import orders
from cosyvoice_worker.staging.orders import Order, Result
from cosyvoice_worker.staging.pointer import Staged, write_pointer


class Pod:
    """The files below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def order(self, text: str) -> None:
        """What the kubelet writes when the annotation changes."""
        (self.root / "swap").write_text(text)

    def stage(self, revision: str, **engine: object) -> None:
        """Leave what the stager leaves of a revision: its pointer and its document."""
        digest = revision[:1].encode().hex() * 32
        staged = Staged(revision=revision, digest=f"sha256:{digest}", directory=digest, bytes=5, seconds=0.1, files=2)
        write_pointer(self.root, staged, json.dumps(document(revision, **engine)).encode())

    def tell(self, order: str, state: orders.State, *, room: bool = False, **outcome: object) -> None:
        """How far the stager is with an order."""
        revision = order.partition(".")[0]
        orders.write_result(self.root, Result(order, revision, state, outcome=outcome or None, room=room))

    def offer(self, order: str, **engine: object) -> None:
        """Order a revision that is staged by then."""
        self.stage(order.partition(".")[0], **engine)
        self.tell(order, "Staged")
        self.order(order)

    def mark_begun(self, order: str) -> None:
        """What a front leaves that has begun an order."""
        parsed = orders.parse(order)
        assert isinstance(parsed, Order)
        orders.begin(self.root, parsed)


def document(revision: str, **engine: object) -> dict[str, Any]:
    """A revision's model.json."""
    return {
        "schema": 1,
        "namespace": "speech",
        "model": "narrator",
        "version": f"v-{revision}",
        "revision": revision,
        "source": {"uri": "pvc://voices/model", "path": "/source/model"},
        "staging": {"sizeLimitBytes": 1000},
        "engine": {"device": "cpu", "loadTimeoutSeconds": 60, "warmUp": {"texts": ["Hello."]}, **engine},
    }
