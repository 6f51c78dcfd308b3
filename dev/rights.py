"""What a service account may do by the chart's rules, against what the audit log says it did.

Both sides are sets of (API group, resource or resource/subresource, verb), as RBAC spells them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dev.audit import Request

Right = tuple[str, str, str]

_CREATED = 201
_RULES = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})


def granted(objects: Iterable[Mapping[str, Any]], account: str) -> frozenset[Right]:
    """Every right that the Roles and ClusterRoles among `objects` give to `account` by their bindings."""
    objects = list(objects)
    roles = {
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]): one["rules"]
        for one in objects
        if one["kind"] in {"Role", "ClusterRole"}
    }
    bound = [
        (one["roleRef"]["kind"], one["metadata"].get("namespace"), one["roleRef"]["name"])
        for one in objects
        if one["kind"] in {"RoleBinding", "ClusterRoleBinding"}
        and any(subject["name"] == account for subject in one["subjects"])
    ]
    return frozenset(
        (group, resource, verb)
        for kind, namespace, name in bound
        for rule in roles[kind, namespace if kind == "Role" else None, name]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


def used(requests: Iterable[Request]) -> frozenset[Right]:
    """Every right that the requests needed. A patch that created its object (server-side apply) needed two."""
    rights: set[Right] = set()
    for one in requests:
        rights.add((one.group, one.kind, one.verb))
        if one.verb == "patch" and one.code == _CREATED:
            rights.add((one.group, one.kind, "create"))
    return frozenset(rights)


def forbidden(requests: Iterable[Request]) -> list[Request]:
    """The requests that RBAC refused: admission (a namespace that ends, a quota, a policy) answers 403 too."""
    return [one for one in requests if not one.allowed]


def after_their_release(requests: Iterable[Request]) -> frozenset[Request]:
    """Those of the `requests` (a whole log, oldest first) that came when the rights of their account had been deleted.

    A release that goes takes its rights along while its operator still ends.
    """
    gone: set[tuple[str, str]] = set()
    late: set[Request] = set()
    for one in sorted(requests, key=lambda request: request.received):
        if one.resource in _RULES:
            if one.verb == "delete":
                gone.add((one.namespace, one.name))
            elif one.verb in {"create", "patch", "update"}:
                gone.discard((one.namespace, one.name))
        account = one.user.rpartition(":")[2]
        if any(name.startswith(account) and namespace in {"", one.namespace} for namespace, name in gone):
            late.add(one)
    return frozenset(late)


def table(rights: Iterable[Right]) -> list[str]:
    """For the eyes: `apps deployments get`, one a line."""
    return sorted(" ".join(part for part in right if part) for right in rights)
