"""The operator may do what it does and nothing more: the chart's rules against every request of this session.

The name puts it last: what it looks at is what all the others made the operator do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import deploy, helm, rights
from dev.audit import AuditLog, Request

HERE = Path(__file__).parent
FINALIZERS = ("cosyvoice.dev", "cosyvoicemodels/finalizers", "update")
# Never a request, and yet needed: where the API server enforces who may block an owner's deletion (the admission plugin
# OwnerReferencesPermissionEnforcement), it asks whether the operator has this right, and makes no audit event of that.
NEVER_A_REQUEST = {FINALIZERS}
# What a Role cannot grant: an operator limited to namespaces is refused it, and goes on without.
CLUSTER_SCOPED = {"nodes"}
# Discovery, which every authenticated account may do, names no object; the log's reader leaves it out.


@pytest.fixture(scope="module")
def requests(operator: None, session_log: AuditLog) -> list[Request]:
    """What the operators of this session asked for, however their releases were called."""
    return [one for one in session_log.since_mark() if _is_operators(one.user)]


def _is_operators(user: str) -> bool:
    _, _, account = user.rpartition(":")
    return user.startswith("system:serviceaccount:") and f"-{account}".endswith(f"-{deploy.NAME}")


@pytest.fixture(scope="module", params=["cluster-wide", "one namespace"])
def granted(request: pytest.FixtureRequest) -> frozenset[rights.Right]:
    values = {} if request.param == "cluster-wide" else {"watchNamespaces": ["speech"]}
    return rights.granted(helm.find().template(deploy.RELEASE, deploy.NAMESPACE, values), deploy.NAME)


@pytest.fixture
def whole_suite(request: pytest.FixtureRequest) -> bool:
    """Whether all of the cluster's tests run in this session, so that a right nobody used is one too many."""
    config = request.config
    narrowed = bool(config.option.keyword) or any("::" in argument for argument in config.args)
    chosen = {Path(item.path) for item in request.session.items}
    return not narrowed and chosen >= set(HERE.glob("test_*.py"))


def test_no_request_was_refused_for_want_of_a_right(requests: list[Request], session_log: AuditLog) -> None:
    """What an operator still asks for while its release is being taken away is not its want."""
    suites = f"system:serviceaccount:{deploy.NAMESPACE}:{deploy.NAME}"
    late = rights.after_their_release(session_log.since_mark())
    refused = [one for one in rights.forbidden(requests) if one.user == suites or one.kind not in CLUSTER_SCOPED]

    assert [str(one) for one in refused if one not in late] == []


def test_every_request_is_one_that_the_chart_allows(requests: list[Request], granted: frozenset[rights.Right]) -> None:
    """Of whatever part of the suite ran; another binding, a leftover one, would let more pass."""
    used = rights.used(requests)

    assert ("cosyvoice.dev", "cosyvoicemodels", "list") in used
    assert rights.table(used - granted) == []


def test_no_right_is_left_unused_by_the_whole_suite(
    request: pytest.FixtureRequest, requests: list[Request], granted: frozenset[rights.Right], whole_suite: bool
) -> None:
    """A part of the suite uses a part of the rights: what is told of it then is only that it used no more."""
    unused = granted - rights.used(requests)

    assert FINALIZERS in unused
    if whole_suite:
        assert rights.table(unused - NEVER_A_REQUEST) == []
    else:
        text = "only a part of the cluster's tests ran; unused so far:\n  " + "\n  ".join(rights.table(unused))
        request.node.add_report_section("call", "rights", text)
