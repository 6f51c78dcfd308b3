"""A pod that may answer and not ask: what it sends on its own account is dropped in its network, and noted."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.cluster.memory import cgroup_of

TABLE = "cosyvoice-egress"
ASKED = "asked"
# Answers belong to connections that others have opened. What belongs to none, such as the end of one that is forgotten,
# asks for nothing.
RULES = f"""
table inet {TABLE} {{
  set {ASKED} {{ typeof ip daddr . th dport; flags dynamic; size 1024; }}
  chain output {{
    type filter hook output priority 0; policy drop;
    oifname lo accept
    ct state established,related accept
    ct state new meta l4proto {{ tcp, udp }} add @{ASKED} {{ ip daddr . th dport }}
  }}
  chain forward {{ type filter hook forward priority 0; policy drop; }}
}}
"""


@dataclass(frozen=True)
class NoEgress:
    """The rules in the network namespace that the open file `namespace` holds."""

    namespace: int

    def asked(self) -> set[str]:
        """Whom the pod would have asked since this was asked last, as address and port."""
        told = json.loads(self.nft("-j", "list", "set", "inet", TABLE, ASKED))
        found = next(one["set"] for one in told["nftables"] if "set" in one)
        self.nft("flush", "set", "inet", TABLE, ASKED)
        return {"{}:{}".format(*element["concat"]) for element in found.get("elem", ())}

    def nft(self, *words: str, rules: str | None = None) -> str:
        """Run nft there; what it printed."""
        place = f"--net=/proc/{os.getpid()}/fd/{self.namespace}"
        done = subprocess.run(
            ["nsenter", place, "nft", *words], input=rules, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"nft {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout


@contextlib.contextmanager
def no_egress(pod: dict[str, Any]) -> Iterator[NoEgress]:
    """The pod is kept from asking anybody anything while the context lasts, whatever becomes of its containers."""
    namespace = os.open(f"/proc/{_process_in(pod)}/ns/net", os.O_RDONLY)
    try:
        rules = NoEgress(namespace)
        rules.nft("-f", "-", rules=RULES)
        yield rules
        rules.nft("delete", "table", "inet", TABLE)
    finally:
        os.close(namespace)


def _process_in(pod: dict[str, Any]) -> int:
    """One of the worker's, wherever below its cgroup it is."""
    for members in cgroup_of(pod, "worker").rglob("cgroup.procs"):
        if found := members.read_text().split():
            return int(found[0])
    raise LookupError(f"no process in the worker container of {pod['metadata']['name']}")
