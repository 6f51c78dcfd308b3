"""The objects that a decision asks for, in the order in which they have to be applied. Pure."""

from __future__ import annotations

from cosyvoice_operator import manifests, revision
from cosyvoice_operator.api import Model
from cosyvoice_operator.manifests.common import Manifest
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.rollout import Decision


def desired(model: Model, observed: Observed, decision: Decision, policy: Policy) -> tuple[Manifest, ...]:
    """What has to exist after this pass. The revision comes before the Deployment whose pods mount it.

    A revision that is stored is never rendered again: its template is applied as it was when it was created.
    """
    if decision.template is None:
        return _front(model) if decision.touch and observed.workload else ()
    stored = observed.stored(decision.template)
    if stored is not None:
        return (*_front(model), _deployment(model, observed, decision, dict(stored.template)))
    resolved = revision.resolve(model.spec, policy)
    template = manifests.pod_template(model.name, decision.template, resolved)
    return (
        manifests.config_map(model.identity, decision.template, resolved, template),
        *_front(model),
        _deployment(model, observed, decision, template),
    )


def _front(model: Model) -> tuple[Manifest, ...]:
    return manifests.service(model), manifests.disruption_budget(model)


def _deployment(model: Model, observed: Observed, decision: Decision, template: Manifest) -> Manifest:
    autoscaled = observed.workload is not None and observed.workload.autoscaled
    strategy = decision.rollout.strategy if decision.rollout else model.spec.rollout.strategy
    return manifests.deployment(model, template, strategy=strategy, autoscaled=autoscaled)
