"""Once its weights are staged a worker asks nobody for anything: it restarts, swaps and speaks without egress."""

from __future__ import annotations

import json
from typing import Any

from dev.playground import Playground
from dev.traffic import Client
from dev.waiting import wait_for
from tests.cluster.egress import no_egress

# Room for a second engine beside the first.
RESOURCES = {"requests": {"cpu": "50m", "memory": "700Mi"}, "limits": {"memory": "3Gi"}}
ASK_THE_API_SERVER = """
import os, socket
try:
    socket.create_connection((os.environ["KUBERNETES_SERVICE_HOST"], 443), timeout=2).close()
    print("reached")
except TimeoutError:
    print("dropped")
"""


def test_a_worker_restarts_swaps_and_speaks_without_egress(
    playground: Playground, good_paths: tuple[str, str, str]
) -> None:
    def apply(version: str, path: str) -> None:
        playground.apply_model(
            "quiet", path=path, version=version, worker={"resources": RESOURCES}, rollout={"strategy": "HotSwap"}
        )

    def pod() -> dict[str, Any]:
        (found,) = playground.pods("quiet")
        return found

    def execute(program: str) -> str:
        return playground.run("exec", pod()["metadata"]["name"], "-c", "worker", "--", "python3", "-c", program).strip()

    def status() -> dict[str, Any]:
        raw = f"/api/v1/namespaces/{playground.namespace}/pods/{pod()['metadata']['name']}:8081/proxy/status"
        answer: dict[str, Any] = json.loads(playground.run("get", "--raw", raw))
        return answer

    def spoken_by() -> str | None:
        address = playground.get("service", "quiet")["spec"]["clusterIP"]
        reply = Client(address, keep=False).speak(stream=False)
        assert reply.error is None
        return reply.version

    api_server = playground.kubectl.get("-n", "default", "service", "kubernetes")["spec"]["clusterIP"]
    apply("v1", good_paths[0])
    playground.wait_ready("quiet")
    before = pod()
    assert execute(ASK_THE_API_SERVER) == "reached"

    with no_egress(before) as rules:
        assert execute(ASK_THE_API_SERVER) == "dropped"
        assert rules.asked() == {f"{api_server}:443"}

        first = status()["engine"]["pid"]
        execute(f"import os; os.kill({first}, 9)")
        wait_for("another engine", lambda: status()["ready"] and status()["engine"]["pid"] != first, timeout=60)
        assert spoken_by() == "v1"

        apply("v2", good_paths[1])
        wait_for("v2 to be the target", lambda: playground.model("quiet")["status"].get("targetVersion") == "v2")
        playground.wait_ready("quiet")
        assert spoken_by() == "v2"

        execute("import os; os.kill(1, 15)")
        wait_for("a worker anew", lambda: pod()["status"]["containerStatuses"][0]["restartCount"] == 1, timeout=60)
        playground.wait_ready("quiet")
        wait_for("the new worker", lambda: pod()["status"]["containerStatuses"][0]["ready"], timeout=120)
        assert spoken_by() == "v2"

        assert pod()["metadata"]["uid"] == before["metadata"]["uid"]
        assert rules.asked() == set()
