"""Which model.json a container goes by, where the operator may name another one than the pod was made with.

Three documents may lie in one directory: `model.json`, which the pod was made with; `current.json`, which replaces it
for everything that starts; `candidate.json`, which a running worker is to try. Each names the revision it belongs to.

`serve` chooses before anything is imported that is not in the interpreter, so nothing here parses JSON: inside a JSON
string every quote is escaped, so the text looked for can only be the field itself.
"""

from __future__ import annotations

import os

from cosyvoice_worker.names import CANDIDATE_CONFIG, CURRENT_CONFIG, REVISIONS, STAGED_POINTER

_FIELD = b'"revision":"'
LONGEST_REVISION = 63


def current(config: str) -> str:
    """What a starting container goes by: `current.json` beside the file `config`, or else that file."""
    path = os.path.join(os.path.dirname(config), CURRENT_CONFIG)
    return path if os.path.exists(path) else config


def of_revision(config: str, revision: str) -> str | None:
    """The document of `revision` among the three; None when it is in none of them."""
    beside = os.path.dirname(config)
    names = (os.path.join(beside, CURRENT_CONFIG), os.path.join(beside, CANDIDATE_CONFIG), config)
    return next((path for path in names if revision_in(path) == revision), None)


def to_serve(config: str, root: str) -> str:
    """What `serve` loads: the current document if its revision is staged under `root`, else what the pod started with.

    Of the current document the answer is the copy that was staged with the weights, so that the engine and the front
    read the same one whatever the operator writes meanwhile. When nothing is staged it is the document itself, for a
    message that tells so.
    """
    wanted = current(config)
    revision = revision_in(wanted)
    if revision and _is_staged(root, revision):
        return config if wanted == config else staged(root, revision)
    revision = revision_in(os.path.join(root, STAGED_POINTER))
    return staged(root, revision) if revision and _is_staged(root, revision) else wanted


def pointer(root: str, revision: str) -> str:
    """Where the pointer to the staged version of `revision` lies."""
    return os.path.join(root, REVISIONS, revision + ".json")


def staged(root: str, revision: str) -> str:
    """Where the document lies that `revision` was staged with. It is there when the pointer is."""
    return os.path.join(root, REVISIONS, revision + ".model.json")


def _is_staged(root: str, revision: str) -> bool:
    return os.path.exists(pointer(root, revision))


def revision_in(path: str) -> str | None:
    """The revision that the JSON document at `path` names; None when it names none or cannot be read."""
    try:
        with open(path, "rb") as file:
            _, found, rest = b"".join(file.read().split()).partition(_FIELD)
    except OSError:
        return None
    return _a_revision(rest.partition(b'"')[0]) if found else None


def _a_revision(name: bytes) -> str | None:
    """`name` if it can be a revision's: files are named by it. The same as settings.Revision, without `re`."""
    possible = len(name) <= LONGEST_REVISION and name.isalnum() and name == name.lower()
    return name.decode("ascii") if possible else None
