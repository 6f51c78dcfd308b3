"""A template's live ConfigMap: what its pods load instead of the revision that it was made for."""

from __future__ import annotations

from cosyvoice_operator import names
from cosyvoice_operator.api import Identity
from cosyvoice_operator.manifests.common import Manifest, child


def live_config_map(owner: Identity, template: str, current: str, candidate: str | None) -> Manifest:
    """The live ConfigMap of `template`, with the documents (each a whole model.json) `current` and `candidate`."""
    data = {names.KEY_CURRENT: current}
    if candidate is not None:
        data[names.KEY_CANDIDATE] = candidate
    return child(owner, "v1", "ConfigMap", names.live_name(owner.name, template), body={"data": data})
