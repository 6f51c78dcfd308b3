"""The objects that a decision asks for, in the order in which they have to be applied. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cosyvoice_operator import eligibility, live, manifests, names, pins, revision
from cosyvoice_operator.api import Model
from cosyvoice_operator.manifests.common import Manifest
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.placement import Placement
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.rollout import Decision


def desired(model: Model, observed: Observed, decision: Decision, policy: Policy) -> tuple[Manifest, ...]:
    """What has to exist after this pass. What pods mount comes before the Deployment that makes them.

    A revision that is stored is never rendered again: its template is applied as it was when it was created.
    """
    if decision.placed is None:
        return _front(model) if decision.touch and observed.workload else ()
    return tuple(_of(model, observed, decision, decision.placed, policy))


def _of(model: Model, observed: Observed, decision: Decision, placed: Placement, policy: Policy) -> Iterator[Manifest]:
    templates = {stored.revision: dict(stored.template) for stored in observed.revisions}
    configs = {stored.revision: stored.config for stored in observed.revisions}
    if placed.revision not in templates:
        resolved = revision.resolve(model.spec, policy)
        templates[placed.revision] = _template_that_runs(observed, placed.revision) or manifests.pod_template(
            model.name, placed.revision, resolved
        )
        created = manifests.config_map(model.identity, placed.revision, resolved, templates[placed.revision])
        configs[placed.revision] = created["data"][names.KEY_CONFIG]
        yield created
    template = templates.get(placed.template)
    if template is not None and eligibility.reads_live(template):
        yield from _live(model, observed, placed, configs)
    yield from _front(model)
    if template is not None:
        yield _deployment(model, observed, decision, template)


def _template_that_runs(observed: Observed, revision: str) -> Manifest | None:
    """The template of a revision whose ConfigMap was deleted, as the Deployment still has it.

    Rendered anew it would be another one where the operator's defaults have changed since, and pods would be replaced.
    """
    workload = observed.workload
    if workload is None or workload.carrier != revision or not workload.pod_template:
        return None
    return dict(workload.pod_template)


def _live(model: Model, observed: Observed, placed: Placement, configs: dict[str, str]) -> Iterator[Manifest]:
    """The template's live ConfigMap, once there is something to say that the template does not say itself."""
    documents = {
        name: live.document(configs.get(name, ""), pins.known(observed, name))
        for name in (placed.current, placed.candidate)
        if name is not None
    }
    current = documents[placed.current]
    says_nothing = placed.current == placed.template and current == configs.get(placed.template)
    if current is None or (says_nothing and placed.candidate is None and observed.live(placed.template) is None):
        return
    candidate = documents[placed.candidate] if placed.candidate is not None else None
    yield manifests.live_config_map(model.identity, placed.template, current, candidate)


def _front(model: Model) -> tuple[Manifest, ...]:
    return manifests.service(model), manifests.disruption_budget(model)


def _deployment(model: Model, observed: Observed, decision: Decision, template: Manifest) -> Manifest:
    autoscaled = observed.workload is not None and observed.workload.autoscaled
    strategy = decision.rollout.strategy if decision.rollout else model.spec.rollout.strategy
    return manifests.deployment(model, template, strategy=strategy, autoscaled=autoscaled)
