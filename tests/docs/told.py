"""What is not typed as it stands, and what is done instead. Everything else is: see `scenes`."""

from __future__ import annotations

from enum import Enum

from tests.docs.pages import INLINE, Snippet, snippets


class Instead(Enum):
    """What is done with a snippet that no scene runs."""

    NAMED = "names a command whose arguments stand elsewhere, or are the reader's; there is nothing to type"
    TARGET = "a target of the Makefile, which must exist"
    CI = "`.ci/run`, which executes this suite, runs this very command"
    SAME = "a block of docs/install.md has the same lines, and is run"
    NOTHING = "cannot be run here"


# Commands that are named in passing, wherever they stand.
NAMED = {
    "cosyvoice-worker make-bad",
    "cosyvoice-worker make-bad missing-tensor",
    "cosyvoice-worker stage",
    "cosyvoice-worker synthesize --seed",
    "git lfs pull",
    "helm rollback",
    "helm test",
    "helm upgrade",
    "kubectl describe cosyvoicemodel",
    "kubectl edit",
    "kubectl exec",
    "kubectl rollout restart",
    "kubectl scale",
    "kubectl scale cosyvoicemodel",
    "kubectl wait --for=condition=Ready",
    "python -m benchmarks.NAME",
    "python -m cosyvoice_worker.engine",
    "rsync -S",
    "sha256sum .manifest",
    "tar -S",
}

# What cannot be run in a test, by page, and why.
NOT_RUN = {
    ("README.md", "make demo KUBECONFIG="): "needs a registry that a second cluster pulls from",
    ("docs/images.md", "python -m dev.images build worker-cuda"): "downloads 2.7 GB",
    ("docs/metrics-and-alerts.md", "kubectl -n cosyvoice-system logs deployment/cosyvoice-operator --previous"): (
        "an operator that has not crashed has no log from before"
    ),
    (
        "docs/voices.md",
        "pip install",
    ): "would install PyTorch once more; `make setup` installs the same from the same file",
    ("CONTRIBUTING.md", "pytest -s tests/vm"): "is a part of this suite",
}

# What `.ci/run` runs, at the beginning or the end of all tests.
BY_CI = {"make test", "make check", "make cluster-down"}
# A part of what `make test` runs: these tests would run themselves.
PART_OF_THE_SUITE = {"make test-unit"}
# Targets that are named on a page with the arguments to type.
TYPED_TARGETS = ("make run ARGS=", "make load-test URL=")


def told(snippet: Snippet) -> tuple[Instead, str] | None:
    """What is done instead of typing it, and why; None where it is typed."""
    text = snippet.text.strip()
    for (page, beginning), reason in NOT_RUN.items():
        if snippet.page == page and text.startswith(beginning):
            return Instead.NOTHING, reason
    if snippet.language == "sh" and snippet.page == "charts/cosyvoice/README.md" and text in _installing():
        return Instead.SAME, Instead.SAME.value
    if text in BY_CI:
        return Instead.CI, Instead.CI.value
    if snippet.language != INLINE:
        return None
    if text in NAMED:
        return Instead.NAMED, Instead.NAMED.value
    if text.startswith("make ") and not text.startswith(TYPED_TARGETS):
        return Instead.TARGET, Instead.TARGET.value
    return None


def to_type(text: str) -> str:
    """The lines of a block without those that this suite is itself a part of."""
    left_out = BY_CI | PART_OF_THE_SUITE
    return "\n".join(line for line in text.splitlines() if line.partition("#")[0].strip() not in left_out)


def _installing() -> str:
    return "\n".join(snippet.text for snippet in snippets("docs/install.md"))
