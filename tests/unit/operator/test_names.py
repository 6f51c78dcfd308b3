"""Names that are made of a model's name are names to Kubernetes, however long the model's is."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import names

DNS_LABEL = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

models = st.from_regex(DNS_LABEL, fullmatch=True)
revisions = st.from_regex(r"[0-9a-f]{10}", fullmatch=True)


@given(models, revisions)
def test_derived_names_are_valid(model: str, revision: str) -> None:
    for name in (names.revision_name(model, revision), names.live_name(model, revision), names.voices_name(model)):
        assert len(name) <= 253
        assert SUBDOMAIN.fullmatch(name)


@given(models, revisions)
def test_a_live_config_map_is_known_by_its_name(model: str, revision: str) -> None:
    assert names.template_of_live(model, names.live_name(model, revision)) == revision
    for other in (names.revision_name(model, revision), names.voices_name(model), f"{model}-live", "-live", model):
        assert names.template_of_live(model, other) is None


@given(models)
def test_selector_labels_are_valid_label_values(model: str) -> None:
    assert all(LABEL_VALUE.fullmatch(value) for value in names.selector_labels(model).values())


@given(models, models, revisions, revisions)
def test_two_models_never_share_a_revisions_name(one: str, other: str, first: str, second: str) -> None:
    same = names.revision_name(one, first) == names.revision_name(other, second)

    assert same == ((one, first) == (other, second))


@given(models, models, revisions)
def test_a_revision_is_never_mistaken_for_voices(one: str, other: str, revision: str) -> None:
    assert names.revision_name(one, revision) != names.voices_name(other)
