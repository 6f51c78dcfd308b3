"""The objects that a model consists of, as plain dicts the way the API server takes them. Pure."""

from cosyvoice_operator.manifests.compare import is_applied
from cosyvoice_operator.manifests.config_map import config_map
from cosyvoice_operator.manifests.deployment import deployment
from cosyvoice_operator.manifests.disruption import disruption_budget
from cosyvoice_operator.manifests.live_config_map import live_config_map
from cosyvoice_operator.manifests.service import service
from cosyvoice_operator.manifests.template import pod_template

__all__ = [
    "config_map",
    "deployment",
    "disruption_budget",
    "is_applied",
    "live_config_map",
    "pod_template",
    "service",
]
