"""Which files of a model directory are staged, and finding them without reading them.

Only what inference reads is staged, by an allow-list: a claim may hold anything else beside it (training state, ONNX
files, the 988 MB of CosyVoice-BlankEN's own weights, which llm.pt overrides).
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.staging.failures import source_failure

# The yaml's name tells the model's generation, as in the published directories.
SERVED_YAML = "cosyvoice2.yaml"
OTHER_YAML = re.compile(r"cosyvoice\d*\.yaml")

WEIGHTS = ("llm.pt", "flow.pt", "hift.pt")
TEXT_MODEL = "CosyVoice-BlankEN"
VOICES = "voices"
LOST_AND_FOUND = "lost+found"  # of a new ext4 volume
REQUIRED = (
    SERVED_YAML,
    *WEIGHTS,
    f"{TEXT_MODEL}/config.json",
    f"{TEXT_MODEL}/vocab.json",
    f"{TEXT_MODEL}/merges.txt",
    f"{TEXT_MODEL}/tokenizer_config.json",
)
OPTIONAL = re.compile(rf"{TEXT_MODEL}/[\w.-]+\.(json|txt)|{VOICES}/[a-z0-9][a-z0-9-]{{0,62}}\.safetensors", re.ASCII)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to be staged: `path` in the model directory, `real` where its bytes are, size in bytes, mtime in ns."""

    path: str
    real: Path
    size: int
    modified_ns: int


def select(directory: Path, boundary: Path) -> list[SourceFile]:
    """The files of the model `directory` to be staged, sorted by path.

    Symbolic links may lead anywhere inside `boundary` (the mounted claim): a hub's cache is made of such links.
    Raises WorkerError: MissingFile, UnknownVersion, AccessDenied for a link that leaves `boundary`, CorruptFile for
    what is no regular file, SourceUnreachable when the directory cannot be read or there is nothing at all.
    """
    _check_directory(directory, boundary)
    try:
        names = _listing(directory)
    except OSError as error:
        raise source_failure(error, str(directory)) from error
    if not names:
        raise _nothing_in(directory)
    _check_version(names, directory)
    missing = [path for path in REQUIRED if path not in names]
    if missing:
        raise fail(
            Reason.MISSING_FILE,
            Phase.STAGE,
            f"{', '.join(missing)} missing in {directory}: a CosyVoice2 directory has {', '.join(REQUIRED)}",
            file=missing[0],
        )
    chosen = sorted(path for path in names if path in REQUIRED or OPTIONAL.fullmatch(path))
    return [_resolve(directory, path, boundary.resolve()) for path in chosen]


def _check_directory(directory: Path, boundary: Path) -> None:
    try:
        if stat.S_ISDIR(directory.stat().st_mode):
            _check_inside(directory, boundary)
            return
        found = "a file"
    except (FileNotFoundError, NotADirectoryError):
        found = "nothing"
    except OSError as error:
        raise source_failure(error, str(directory)) from error
    if not boundary.exists():
        raise fail(
            Reason.SOURCE_UNREACHABLE, Phase.STAGE, f"{boundary} is not there: the source is not mounted", file="."
        )
    if not _has_content(boundary):
        raise _nothing_in(boundary)
    raise fail(
        Reason.MISSING_FILE,
        Phase.STAGE,
        f"no model directory at {directory}: check the path in spec.source.uri",
        file=".",
        expected="a directory",
        actual=found,
    )


def _check_inside(directory: Path, boundary: Path) -> None:
    real = directory.resolve()
    if not real.is_relative_to(boundary.resolve()):
        raise fail(
            Reason.ACCESS_DENIED,
            Phase.STAGE,
            f"{directory} leads to {real}, outside of the source {boundary}: copy the model into the source",
            file=".",
            expected=f"a path inside {boundary}",
            actual=real,
        )


def _has_content(boundary: Path) -> bool:
    try:
        return any(name != LOST_AND_FOUND for name in os.listdir(boundary))  # noqa: PTH208 - names are wanted, not paths
    except OSError as error:
        raise source_failure(error, str(boundary)) from error


def _nothing_in(directory: Path) -> WorkerError:
    """Retryable: a missing file is the version's fault, none at all is more like storage that is not there."""
    return fail(
        Reason.SOURCE_UNREACHABLE,
        Phase.STAGE,
        f"there is nothing in {directory}: its storage is not mounted, or nothing was copied there yet",
        file=".",
        expected="a model directory",
        actual="an empty directory",
    )


def _listing(directory: Path) -> set[str]:
    """The names at the top, and those in the two folders that matter, as `folder/name`."""
    names = set(os.listdir(directory))  # noqa: PTH208 - names are wanted, not paths
    for folder in (TEXT_MODEL, VOICES):
        if (directory / folder).is_dir():
            names |= {f"{folder}/{name}" for name in os.listdir(directory / folder)}  # noqa: PTH208
    return names


def _check_version(names: set[str], directory: Path) -> None:
    if SERVED_YAML in names:
        return
    others = sorted(name for name in names if OTHER_YAML.fullmatch(name))
    if others:
        raise fail(
            Reason.UNKNOWN_VERSION,
            Phase.STAGE,
            f"{directory} holds {others[0]}: this worker runs CosyVoice2 models only, whose yaml is {SERVED_YAML}",
            file=others[0],
            expected=SERVED_YAML,
            actual=others[0],
        )


def _resolve(directory: Path, path: str, boundary: Path) -> SourceFile:
    link = directory / path
    try:
        # Not Path.resolve: until Python 3.13 it tells of a circle by RuntimeError.
        real = Path(os.path.realpath(link, strict=True))
        if not real.is_relative_to(boundary):
            raise _escapes(path, real, boundary)
        status = real.stat()
    except FileNotFoundError as error:
        raise fail(
            Reason.MISSING_FILE,
            Phase.STAGE,
            f"{path} is a symbolic link to {_target(link)}, which does not exist",
            file=path,
        ) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _circle(path, link) from error
        raise source_failure(error, path) from error
    if not stat.S_ISREG(status.st_mode):
        raise fail(
            Reason.CORRUPT_FILE,
            Phase.STAGE,
            f"{path} is {_kind(status.st_mode)}, not a regular file",
            file=path,
            expected="a regular file",
            actual=_kind(status.st_mode),
        )
    return SourceFile(path=path, real=real, size=status.st_size, modified_ns=status.st_mtime_ns)


def _escapes(path: str, real: Path, boundary: Path) -> WorkerError:
    return fail(
        Reason.ACCESS_DENIED,
        Phase.STAGE,
        f"{path} is a symbolic link to {real}, outside of the source {boundary}: copy the file into the source",
        file=path,
        expected=f"a path inside {boundary}",
        actual=real,
    )


def _circle(path: str, link: Path) -> WorkerError:
    message = f"{path} is a symbolic link to {_target(link)}, which leads back to it"
    return fail(Reason.MISSING_FILE, Phase.STAGE, message, file=path)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # it was one a moment ago
        return "another place"


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
