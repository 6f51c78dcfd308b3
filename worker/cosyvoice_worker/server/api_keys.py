"""The API keys that are taken: a directory with a file for each, as a Secret is mounted.

They are read again while the worker runs, so that keys come and go without a restart. What is kept of a key is its
sha256: it can be compared in constant time, whatever the length of what was sent, and tells nobody the key.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import time
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.regular_files import open_regular

# A change of the Secret reaches the directory within a minute or two; looking more often than this would not help.
LOOK_SECONDS = 2.0
SHORTEST, LONGEST = 16, 512
MOST_KEYS = 256

# What the header can carry: RFC 6750's `b64token`.
_KEY = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
# The kubelet's link to what it wrote last: all files of one directory are of one moment.
_WRITTEN_LAST = "..data"
_READ_BYTES = 4096
_TRIES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of one moment: their names and sha256, and why others cannot be used. No key itself."""

    names: tuple[str, ...] = ()
    digests: tuple[bytes, ...] = ()
    unusable: tuple[str, ...] = ()

    def opens(self, key: bytes) -> bool:
        """Whether `key` is one of them; takes as long for a right one as for a wrong one."""
        given = hashlib.sha256(key).digest()
        found = False
        for digest in self.digests:
            found |= hmac.compare_digest(digest, given)
        return found


class ApiKeys:
    """The keys in `directory`, looked at anew at most every `look_seconds`.

    Raises WorkerError(InvalidConfig) where there is none to begin with: nobody could be let in.
    """

    def __init__(self, directory: Path, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._directory = directory
        self._look_seconds = look_seconds
        self._lock = asyncio.Lock()
        self._looked = time.monotonic()
        self._ring = read(directory)
        if not self._ring.digests:
            raise fail(Reason.INVALID_CONFIG, Phase.SERVE, _why_none(self._ring), file=str(directory))
        _tell(self._ring)

    async def current(self) -> KeyRing:
        """The keys as they are now, or were a moment ago."""
        async with self._lock:
            if time.monotonic() - self._looked >= self._look_seconds:
                found = await asyncio.to_thread(read, self._directory)
                self._looked = time.monotonic()
                if found != self._ring:
                    _tell(found)
                self._ring = found
            return self._ring


def read(directory: Path) -> KeyRing:
    """The keys in `directory`. One that cannot be read holds none; what stands for no key takes no other with it."""
    ring = KeyRing(unusable=("the directory: there is none",))
    for _ in range(_TRIES):
        written = directory / _WRITTEN_LAST
        try:
            ring, replaced = _read_all(written.resolve(strict=True) if written.is_symlink() else directory)
        except FileNotFoundError:
            continue  # replaced while it was read
        except (OSError, RuntimeError) as error:
            return KeyRing(unusable=(f"the directory: {getattr(error, 'strerror', error)}",))
        if not replaced:
            break
    return ring


def _read_all(directory: Path) -> tuple[KeyRing, bool]:
    """The keys, and whether a file went away meanwhile."""
    names: list[str] = []
    digests: list[bytes] = []
    unusable: list[str] = []
    replaced = False
    for path in sorted(path for path in directory.iterdir() if not path.name.startswith("..")):
        try:
            with open_regular(path) as file:
                key = file.read(_READ_BYTES).strip()
        except OSError as error:
            replaced |= isinstance(error, FileNotFoundError)
            unusable.append(f"{path.name}: {error.strerror}")
            continue
        if (problem := _problem(key)) is not None:
            unusable.append(f"{path.name}: {problem}")
        elif len(names) == MOST_KEYS:
            unusable.append(f"{path.name}: more than {MOST_KEYS} keys")
        else:
            names.append(path.name)
            digests.append(hashlib.sha256(key).digest())
    return KeyRing(tuple(names), tuple(digests), tuple(unusable)), replaced


def _problem(key: bytes) -> str | None:
    if not SHORTEST <= len(key) <= LONGEST:
        return f"{len(key)} bytes, expected {SHORTEST} to {LONGEST}"
    if not _KEY.fullmatch(key):
        return "a key has letters, digits and -._~+/ only, and = at its end"
    return None


def _why_none(ring: KeyRing) -> str:
    found = "; ".join(ring.unusable[:5]) or "it is empty"
    return (
        f"there is no API key that can be used ({found}): put one of {SHORTEST} characters or more into the Secret "
        "that spec.access.apiKeysSecret names"
    )


def _tell(ring: KeyRing) -> None:
    if ring.digests:
        log.info("API keys read", extra={"keys": list(ring.names), "unusable": list(ring.unusable)})
    else:
        log.error(_why_none(ring))
