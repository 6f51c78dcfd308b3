"""Which voices there are: the packs in the model's `voices/` and in the mounted ConfigMap, looked at anew at each use.

The ConfigMap wins over the model: it is what a user can change without a new model version. A pack that cannot be used
is listed with the reason and takes no other with it; if it stands in the ConfigMap it still hides the model's pack of
the same name, because another voice than the one that was put there would be worse than an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.names import VOICES_CONFIG_PATH
from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.voices import files
from cosyvoice_worker.voices.checks import check_name
from cosyvoice_worker.voices.errors import VoiceError, refuse, unknown_voice
from cosyvoice_worker.voices.limits import COSYVOICE2, SUFFIX
from cosyvoice_worker.voices.pack import Pack

MODEL_VOICES = "voices"


@dataclass(frozen=True, slots=True)
class ListedVoice:
    """A voice as told to users: `seconds` of prompt and its transcript, or why its pack is `broken`."""

    name: str
    path: Path
    seconds: float = 0.0
    prompt_text: str = ""
    broken: str | None = None


_Stamp = tuple[int, int, int, int]


class VoiceRegistry:
    """The packs of some directories, of which later ones win; a directory that is not there holds none.

    A pack is read again only when its device, inode, size or modification time changed. Not thread-safe.
    """

    def __init__(self, directories: Sequence[Path], family: str = COSYVOICE2) -> None:
        self._directories = tuple(directories)
        self._family = family
        self._seen: dict[Path, tuple[_Stamp, ListedVoice]] = {}

    def voices(self) -> Mapping[str, ListedVoice]:
        """Every voice by its name, sorted, the broken ones too."""
        seen: dict[Path, tuple[_Stamp, ListedVoice]] = {}
        found: dict[str, ListedVoice] = {}
        for directory in self._directories:
            for path in _packs_in(directory):
                stamp = _stamp(path)
                if stamp is None:
                    continue
                known = self._seen.get(path)
                entry = known if known is not None and known[0] == stamp else (stamp, self._look_at(path))
                seen[path] = entry
                found[entry[1].name] = entry[1]
        self._seen = seen
        return dict(sorted(found.items()))

    def names(self) -> list[str]:
        """The names of the voices that can be used, sorted."""
        return [name for name, voice in self.voices().items() if voice.broken is None]

    def read(self, name: str) -> Pack:
        """The pack of the voice `name`.

        Raises UnknownVoiceError where there is none (the message lists the names), VoiceError where it is broken.
        """
        voices = self.voices()
        voice = voices.get(name)
        if voice is None:
            raise unknown_voice(name, [known for known, other in voices.items() if other.broken is None])
        return self._read(voice.path)

    def _look_at(self, path: Path) -> ListedVoice:
        try:
            pack = self._read(path)
        except VoiceError as error:
            return ListedVoice(_printable(path), path, broken=error.outcome.message)
        return ListedVoice(path.name.removesuffix(SUFFIX), path, pack.seconds, pack.prompt_text)

    def _read(self, path: Path) -> Pack:
        check_name(path.name.removesuffix(SUFFIX), str(path.parent))
        pack = files.read(path)
        if pack.family != self._family:
            expected, reason = self._family, Reason.INCOMPATIBLE_MODEL
            raise refuse(
                "of another model family", file=str(path), expected=expected, actual=pack.family, reason=reason
            )
        return pack


def model_voices(model: Path, config: Path = Path(VOICES_CONFIG_PATH)) -> VoiceRegistry:
    """The voices of the model in directory `model`, with those of the mounted ConfigMap over them."""
    return VoiceRegistry([model / MODEL_VOICES, config])


def _packs_in(directory: Path) -> list[Path]:
    """Pack files by name. A ConfigMap's mount holds its links to `..data` beside it: hidden names are not packs."""
    try:
        return sorted(p for p in directory.iterdir() if p.name.endswith(SUFFIX) and not p.name.startswith("."))
    except OSError:
        return []


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _printable(path: Path) -> str:
    """The file's stem in ASCII: a name that is no voice's name can hold anything, bytes that are no text too."""
    return os.fsencode(path.name.removesuffix(SUFFIX)).decode("ascii", "backslashreplace")
