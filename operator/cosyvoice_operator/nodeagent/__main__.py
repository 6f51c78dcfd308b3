"""`python -m cosyvoice_operator.nodeagent`: keeps memory.high on the worker containers of its node.

Every flag can be given as an environment variable too: COSYVOICE_ and the flag's name, NODE_NAME for the node.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from cosyvoice_operator import logs
from cosyvoice_operator.nodeagent.keeper import Keeper
from cosyvoice_operator.nodeagent.podlist import PodList, PodListError
from cosyvoice_operator.nodeagent.pods import WorkerContainer, parse
from cosyvoice_operator.nodeagent.tree import is_unified

EXIT_STUCK = 70

ROOT = "/sys/fs/cgroup"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
INTERVAL_SECONDS = 5.0
# A pass that takes so long hangs: the kubelet is to start the agent anew. It has no port that a probe could ask.
STUCK_SECONDS = 180

logger = logging.getLogger("cosyvoice_operator.nodeagent")


def main(argv: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Exit codes: 0 after SIGTERM or SIGINT, 2 for a wrong command line, 70 after a pass that hung."""
    args = parse_arguments(argv, environment)
    logs.configure(logging.INFO)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if not is_unified(args.cgroup_root):
        why = "%s is not of cgroup v2, whose memory.high this agent sets: there is nothing to do on this node"
        logger.warning(why, args.cgroup_root, extra={"node": args.node})
        stop.wait()
        return 0
    signal.signal(signal.SIGALRM, lambda *_: os._exit(EXIT_STUCK))
    pods = PodList(args.api_server, args.service_account, args.node, args.namespaces)
    logger.info("keeping memory.high", extra={"node": args.node, "root": str(args.cgroup_root)})
    _keep(Keeper(args.cgroup_root), pods, stop, args.interval_seconds)
    return 0


def _keep(keeper: Keeper, pods: PodList, stop: threading.Event, interval: float) -> None:
    """Pass after pass. Without an answer of the API server the last one counts: values are kept also then."""
    containers: tuple[WorkerContainer, ...] = ()
    told = ""
    while not stop.is_set():
        signal.alarm(STUCK_SECONDS)
        try:
            containers = tuple(one for found in pods.fetch() for one in parse(found))
            told = ""
        except PodListError as error:
            if str(error) != told:
                logger.warning("the pods of this node are not known: %s", error)
            told = str(error)
        keeper.keep(containers)
        stop.wait(interval)
    signal.alarm(0)


def parse_arguments(argv: Sequence[str] | None, environment: Mapping[str, str]) -> argparse.Namespace:
    """The flags, and in their place the environment. Ends the process (2) where they are no use."""
    parser = argparse.ArgumentParser(prog="python -m cosyvoice_operator.nodeagent", description=__doc__)

    def add(flag: str, kind: type | None, default: str | None, text: str, variable: str | None = None) -> None:
        variable = variable or "COSYVOICE_" + flag.removeprefix("--").replace("-", "_").upper()
        value = environment.get(variable) or default
        parser.add_argument(flag, type=kind or _names, default=value, required=value is None, help=text)

    add("--node", str, None, "whose pods to look after", "NODE_NAME")
    add("--cgroup-root", Path, ROOT, f"the node's cgroups, or a part with all pods below ({ROOT})")
    add("--interval-seconds", float, str(INTERVAL_SECONDS), f"from one look to the next ({INTERVAL_SECONDS:g})")
    add("--namespaces", None, "", "comma-separated; default: all")
    add("--api-server", str, _server(environment), "https://…; default: that of the pod's cluster")
    add("--service-account", Path, ACCOUNT, f"directory of token and ca.crt ({ACCOUNT})")
    return parser.parse_args(argv)


def _server(environment: Mapping[str, str]) -> str | None:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return None
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


if __name__ == "__main__":
    sys.exit(main())
