"""What the operator does to others' objects, after its own death, and when there is nothing to do."""

from __future__ import annotations

import json
import time

from dev.audit import AuditLog
from dev.playground import Playground
from dev.waiting import wait_for

OPERATOR_NAMESPACE = "cosyvoice-system"
OPERATOR_USER = "system:serviceaccount:cosyvoice-system:cosyvoice-operator"
RESYNC_SECONDS = 2


def writes_of_the_operator(audit_log: AuditLog, namespace: str) -> list[str]:
    """Mutating requests of the operator in a namespace after the mark."""
    return [
        str(request)
        for request in audit_log.since_mark()
        if request.user == OPERATOR_USER and request.mutating and request.namespace == namespace
    ]


def test_idle_resyncs_and_an_unchanged_apply_write_nothing(
    playground: Playground, tiny_path: str, audit_log: AuditLog
) -> None:
    playground.apply_model("idle", path=tiny_path)
    playground.wait_ready("idle")
    time.sleep(2 * RESYNC_SECONDS)  # what follows Ready at once (an event, a last status) is not idleness
    assert writes_of_the_operator(audit_log, playground.namespace), "no write was seen at all: this proves nothing"

    audit_log.mark()
    assert "unchanged" in playground.apply_model("idle", path=tiny_path)
    time.sleep(10 * RESYNC_SECONDS)

    assert writes_of_the_operator(audit_log, playground.namespace) == []


def test_an_operator_killed_in_mid_rollout_finishes_without_duplicates(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("survivor", path=tiny_path)
    wait_for("the Deployment", lambda: playground.get("deployment", "survivor"))

    for _ in range(2):
        playground.kubectl.run(
            "-n", OPERATOR_NAMESPACE, "delete", "pod", "-l", "app.kubernetes.io/name=cosyvoice-operator",
            "--grace-period=0", "--force",
        )  # fmt: skip
        time.sleep(1)
    playground.wait_ready("survivor")

    assert len(playground.get("deployments")["items"]) == 1
    assert len(playground.get("replicasets")["items"]) == 1
    assert len(playground.get("configmaps", "-l", "cosyvoice.dev/model=survivor,cosyvoice.dev/revision")["items"]) == 1
    assert len(playground.get("services")["items"]) == 1


def test_drift_in_the_deployment_is_repaired(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("drift", path=tiny_path)
    playground.wait_ready("drift")
    before = playground.get("deployment", "drift")["spec"]["template"]

    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "localhost:1/none:none"}]
    playground.run("patch", "deployment", "drift", "--type=json", f"--patch={json.dumps(patch)}")
    playground.run("delete", "service", "drift")

    wait_for("the Service", lambda: playground.get("service", "drift"))
    wait_for("the template as it was", lambda: playground.get("deployment", "drift")["spec"]["template"] == before)
    playground.wait_ready("drift")


def test_an_object_of_another_owner_is_left_alone(playground: Playground, tiny_path: str) -> None:
    playground.run("create", "service", "clusterip", "taken", "--tcp=80:80")
    theirs = playground.get("service", "taken")

    playground.apply_model("taken", path=tiny_path)
    condition = playground.wait_condition("taken", "Stalled", reason="NameConflict")

    assert condition["message"] == (
        f"Service {playground.namespace}/taken exists and is not owned by this CosyVoiceModel; "
        "delete it or give the model another name"
    )
    now = playground.get("service", "taken")
    assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


def test_a_paused_model_starts_no_rollout_until_it_is_resumed(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("paused", path=tiny_path)
    playground.wait_ready("paused")

    playground.apply_model("paused", path=tiny_path, version="v2", paused=True)
    playground.wait_condition("paused", "Progressing", status="False", reason="Paused")
    assert playground.model("paused")["status"]["activeVersion"] == "v1"
    assert len(playground.get("replicasets")["items"]) == 1

    playground.apply_model("paused", path=tiny_path, version="v2", paused=False)
    wait_for("v2 to be active", lambda: playground.model("paused")["status"].get("activeVersion") == "v2", timeout=120)
