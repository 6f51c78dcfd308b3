"""Reading the directory of API keys."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import WorkerError
from cosyvoice_worker.server.api_keys import ApiKeys, KeyRing, read

KEY = "0123456789abcdef"


def test_every_file_is_a_key(tmp_path: Path) -> None:
    (tmp_path / "ann").write_text(KEY + "\n")
    (tmp_path / "ben").write_text("  " + KEY.upper() + "==\r\n")

    ring = read(tmp_path)

    assert ring.names == ("ann", "ben")
    assert ring.unusable == ()
    assert [ring.opens(key.encode()) for key in (KEY, KEY.upper() + "==", KEY.upper(), "")] == [
        True,
        True,
        False,
        False,
    ]


UNUSABLE = {
    "": "ann: 0 bytes, expected 16 to 512",
    "x" * 15: "ann: 15 bytes, expected 16 to 512",
    "x" * 513: "ann: 513 bytes, expected 16 to 512",
    "x" * 100_000: "ann: 4096 bytes, expected 16 to 512",
    "two words 012345678": "ann: a key has letters, digits and -._~+/ only, and = at its end",
    "schlüssel-012345678": "ann: a key has letters, digits and -._~+/ only, and = at its end",
    "\ufeff0123456789abcdef": "ann: a key has letters, digits and -._~+/ only, and = at its end",
    "line\nline-0123456789": "ann: a key has letters, digits and -._~+/ only, and = at its end",
}


@pytest.mark.parametrize(("content", "why"), UNUSABLE.items(), ids=range(len(UNUSABLE)))
def test_what_cannot_be_a_key_opens_nothing_and_is_named_not_shown(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "ann").write_text(content)

    ring = read(tmp_path)

    assert (ring.names, ring.unusable) == ((), (why,))
    assert not ring.opens(content.encode())


def test_more_keys_than_are_looked_through_are_refused(tmp_path: Path) -> None:
    for number in range(258):
        (tmp_path / f"{number:03}").write_text(KEY + str(number))

    ring = read(tmp_path)

    assert len(ring.names) == 256
    assert ring.unusable == ("256: more than 256 keys", "257: more than 256 keys")


def test_what_stands_for_no_key_takes_no_other_with_it_and_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "ann").write_text(KEY)
    (tmp_path / "folder").mkdir()
    (tmp_path / "gone").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")

    ring = read(tmp_path)

    assert ring.names == ("ann",)
    assert ring.unusable == (
        "folder: Is a directory",
        "gone: No such file or directory",
        "pipe: not a regular file",
        "zero: not a regular file",
    )


def test_links_in_a_circle_hold_no_key(tmp_path: Path) -> None:
    (tmp_path / "..data").symlink_to("..data")

    assert read(tmp_path).digests == ()


@pytest.mark.parametrize("there", [False, True], ids=["no directory", "a file"])
def test_where_there_is_no_directory_there_is_no_key(tmp_path: Path, there: bool) -> None:
    place = tmp_path / "keys"
    if there:
        place.write_text(KEY)

    ring = read(place)

    assert ring.digests == ()
    assert ring.unusable == ("the directory: " + ("Not a directory" if there else "there is none"),)


def test_to_begin_without_a_key_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "ann").write_text("hunter2")

    with pytest.raises(WorkerError) as refused:
        ApiKeys(tmp_path)

    told = refused.value.outcome
    assert (told.exit_code, told.reason.value) == (64, "InvalidConfig")
    assert told.message == (
        "there is no API key that can be used (ann: 7 bytes, expected 16 to 512): "
        "put one of 16 characters or more into the Secret that spec.access.apiKeysSecret names"
    )


async def test_the_directory_is_not_read_more_often_than_agreed(tmp_path: Path) -> None:
    (tmp_path / "ann").write_text(KEY)
    keys = ApiKeys(tmp_path, look_seconds=3600)
    (tmp_path / "ann").unlink()

    assert (await keys.current()).names == ("ann",)


async def test_the_log_names_the_keys_and_shows_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "ann").write_text(KEY)
    keys = ApiKeys(tmp_path, look_seconds=0)
    (tmp_path / "ann").unlink()
    (tmp_path / "ben").write_text("secret but short"[:12])
    await keys.current()
    await keys.current()

    assert [(record.levelname, record.getMessage().partition(" (")[0]) for record in caplog.records] == [
        ("INFO", "API keys read"),
        ("ERROR", "there is no API key that can be used"),
    ]
    assert KEY not in repr([vars(record) for record in caplog.records])
    assert "secret but" not in repr([vars(record) for record in caplog.records])


def test_what_is_kept_of_a_key_does_not_tell_it(tmp_path: Path) -> None:
    (tmp_path / "ann").write_text(KEY)

    assert KEY not in repr(read(tmp_path))
    assert not KeyRing().opens(b"")
