"""What may be done against what was done."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dev import rights
from dev.audit import AuditLog, Request


def event(verb: str, code: int = 200, decision: str = "allow", **target: str) -> dict[str, Any]:
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": "system:serviceaccount:a:operator"},
        "objectRef": {"apiGroup": "apps", "resource": "deployments", **target},
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z",
        "stageTimestamp": "2026-01-01T00:00:00.000002Z",
    }


def read(tmp_path: Path, *events: dict[str, Any]) -> list[Request]:
    log = tmp_path / "audit.log"
    log.write_text("".join(f"{json.dumps(one)}\n" for one in events))
    return list(AuditLog(log).since_mark())


@pytest.mark.parametrize(
    ("one", "needed"),
    [
        (event("get"), {("apps", "deployments", "get")}),
        (event("patch"), {("apps", "deployments", "patch")}),
        (event("patch", 201), {("apps", "deployments", "patch"), ("apps", "deployments", "create")}),
        (event("update", subresource="status"), {("apps", "deployments/status", "update")}),
    ],
)
def test_a_request_needs_its_verb_and_an_apply_that_creates_another(
    tmp_path: Path, one: dict[str, Any], needed: set[rights.Right]
) -> None:
    assert rights.used(read(tmp_path, one)) == needed


def test_what_admission_refused_was_not_for_want_of_a_right(tmp_path: Path) -> None:
    requests = read(tmp_path, event("patch", 403), event("delete", 403, "forbid"), event("get", 404))

    assert [one.verb for one in rights.forbidden(requests)] == ["delete"]


def test_only_what_is_bound_to_the_account_is_granted() -> None:
    def role(kind: str, name: str, verb: str, **metadata: str) -> dict[str, Any]:
        rules = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": [verb]}]
        return {"kind": kind, "metadata": {"name": name, **metadata}, "rules": rules}

    def binding(kind: str, name: str, account: str, **metadata: str) -> dict[str, Any]:
        to = kind.removesuffix("Binding")
        return {
            "kind": kind,
            "metadata": {"name": name, **metadata},
            "roleRef": {"kind": to, "name": name},
            "subjects": [{"name": account}],
        }

    objects = [
        *(role("ClusterRole", "all", "get"), binding("ClusterRoleBinding", "all", "operator")),
        *(role("Role", "here", "patch", namespace="a"), binding("RoleBinding", "here", "operator", namespace="a")),
        *(role("ClusterRole", "agent", "list"), binding("ClusterRoleBinding", "agent", "agent")),
        role("Role", "nobody", "delete", namespace="a"),
    ]

    assert rights.granted(objects, "operator") == {("apps", "deployments", "get"), ("apps", "deployments", "patch")}


ACCOUNT = "speech-cosyvoice-operator"
USER = f"system:serviceaccount:speech:{ACCOUNT}"


def log(*requests: tuple[str, str, str, str, str]) -> list[Request]:
    """User, verb, resource, namespace, name; a second apart."""
    times = count(1)
    return [
        Request(user, verb, "", resource, "", namespace, name, 200, received=(now := next(times)), completed=now)
        for user, verb, resource, namespace, name in requests
    ]


def test_what_comes_after_the_rights_were_deleted_and_before_they_are_there_again_is_late() -> None:
    before, deleted, after, elsewhere, again, then = requests = log(
        (USER, "list", "pods", "speech", ""),
        ("helm", "delete", "rolebindings", "speech", ACCOUNT),
        (USER, "list", "pods", "speech", ""),
        (USER, "list", "pods", "radio", ""),
        ("helm", "create", "rolebindings", "speech", ACCOUNT),
        (USER, "list", "pods", "speech", ""),
    )

    assert rights.after_their_release(requests) == {after}
    assert not {before, deleted, elsewhere, again, then} & rights.after_their_release(requests)


def test_rights_of_the_whole_cluster_are_deleted_for_every_namespace() -> None:
    _, after, other = requests = log(
        ("helm", "delete", "clusterrolebindings", "", ACCOUNT),
        (USER, "list", "pods", "radio", ""),
        ("system:serviceaccount:speech:another", "list", "pods", "radio", ""),
    )

    assert rights.after_their_release(requests) == {after}
    assert other not in rights.after_their_release(requests)
