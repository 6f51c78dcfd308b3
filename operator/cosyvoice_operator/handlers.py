"""kopf's part: it watches, and every event of a model or of its children makes the model due. Nothing is decided here.

kopf would handle the events of one model's children side by side, so its handlers only enqueue; `workqueue` runs one
pass at a time for each model. Watches are narrowed on the server to what carries our label.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import kopf

from cosyvoice_operator import names
from cosyvoice_operator.reconcile import Key

CHILDREN = (
    ("apps", "v1", "deployments"),
    ("", "v1", "services"),
    ("", "v1", "pods"),
    ("", "v1", "configmaps"),
    ("policy", "v1", "poddisruptionbudgets"),
)


def make_registry(
    enqueue: Callable[[Key], None], heard: Callable[[], None], *, in_cluster: bool
) -> kopf.OperatorRegistry:
    """The handlers. `enqueue` gets the model of every event, `heard` is called with each."""
    registry = kopf.OperatorRegistry()
    login = kopf.login_with_service_account if in_cluster else kopf.login_with_kubeconfig
    kopf.on.login(registry=registry)(login)

    async def on_model(namespace: str | None, name: str, **_: Any) -> None:
        heard()
        enqueue((str(namespace), name))

    async def on_child(namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
        heard()
        if name := labels[names.LABEL_MODEL]:  # anyone can set the label, and an empty one names no model
            enqueue((str(namespace), name))

    kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)(on_model)
    for group, version, plural in CHILDREN:
        has_label = {names.LABEL_MODEL: kopf.PRESENT}
        kopf.on.event(group, version, plural, labels=has_label, registry=registry)(on_child)
    return registry


def make_settings() -> kopf.OperatorSettings:
    """kopf as a watcher: no events of its own, no annotations, no finalizers, no scanning, timeouts everywhere."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.posting.level = logging.WARNING
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 10
    settings.queueing.worker_limit = 64
    for child in CHILDREN:
        settings.watching.label_selectors[child] = names.LABEL_MODEL
    return settings
