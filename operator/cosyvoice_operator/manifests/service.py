"""The Service in front of a model's ready workers."""

from __future__ import annotations

from cosyvoice_operator import names
from cosyvoice_operator.api import Model
from cosyvoice_operator.manifests.common import Manifest, child


def service(model: Model) -> Manifest:
    """The Service that carries the model's name; only workers that are warm are behind it."""
    wanted = model.spec.service
    return child(
        model.identity,
        "v1",
        "Service",
        model.name,
        annotations=wanted.annotations,
        body={
            "spec": {
                "type": wanted.type,
                "selector": names.selector_labels(model.name),
                "ports": [
                    {
                        "name": names.API_PORT_NAME,
                        "protocol": "TCP",
                        "port": wanted.port,
                        "targetPort": names.API_PORT_NAME,
                    }
                ],
            }
        },
    )
