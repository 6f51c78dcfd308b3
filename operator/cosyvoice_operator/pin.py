"""Which revision is wanted: the one that the spec asks for, or the stored one that the user pinned instead."""

from __future__ import annotations

from dataclasses import dataclass

from cosyvoice_operator import names, revision
from cosyvoice_operator.api import Model
from cosyvoice_operator.observed import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The revision to bring into service. `pinned`: it is the annotation's, and not the one that the spec asks for."""

    revision: str
    version: str
    pinned: bool = False


def wanted(model: Model, observed: Observed) -> Wanted:
    """What is to serve. A pin to a revision that is not there counts for nothing here; `problem` tells of it."""
    asked = revision.identity(model.spec)
    pinned = observed.stored(model.rollback_to)
    if pinned is None or pinned.revision == asked:
        return Wanted(revision=asked, version=model.spec.version)
    return Wanted(revision=pinned.revision, version=pinned.version, pinned=True)


def problem(model: Model, observed: Observed) -> str | None:
    """Why the pin cannot be followed, if so."""
    if model.rollback_to is None or observed.stored(model.rollback_to) is not None:
        return None
    known = ", ".join(f"{stored.revision} ({stored.version})" for stored in observed.revisions) or "none"
    return (
        f"metadata.annotations[{names.ANNOTATION_ROLLBACK_TO}]: there is no revision {model.rollback_to[:63]!r} "
        f"(there are: {known}): name one of these, or remove the annotation to return to the spec"
    )
