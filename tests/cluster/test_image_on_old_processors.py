"""The worker image on a processor without AVX, which qemu plays: no library may take newer instructions for granted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dev import images
from dev.images import Mount
from dev.images.layout import REPOSITORY
from dev.models import tiny

NEHALEM = ("/emulator", "-cpu", "Nehalem")
CHECK = REPOSITORY / "worker" / "image" / "check.sh"


def emulator() -> Mount:
    """A static one: inside the image it finds no library of this machine."""
    found = shutil.which("qemu-x86_64-static")
    assert found is not None, "qemu-x86_64-static is missing: `dev/packages.sh install` installs it"
    return Mount(Path(found), NEHALEM[0])


def test_the_image_starts_there_and_sees_no_avx() -> None:
    """The dynamic linker tells the level of the instruction set: 1 is plain x86-64, 2 has SSE4, 4 would have AVX2."""
    done = images.run("worker", [*NEHALEM, "/lib64/ld-linux-x86-64.so.2", "--list-diagnostics"], mounts=[emulator()])

    assert "x86.cpu_features.isa_1=0x3\n" in done.stdout, done.stderr


@pytest.mark.long
def test_a_model_says_the_same_there(tmp_path: Path) -> None:
    """As at the image's build. More than a minute, since every instruction is translated."""
    model = tiny.write(tmp_path / "model")
    mounts = [emulator(), Mount(CHECK, "/check.sh"), Mount(model, "/model")]

    there = images.run("worker", ["sh", "/check.sh", "/model", *NEHALEM], mounts=mounts)
    here = images.run("worker", ["sh", "/check.sh", "/model"], mounts=mounts)

    assert there.returncode == 0, there.stdout + there.stderr
    assert "s of sound at 24000 Hz" in there.stdout
    assert speech_tokens(there.stdout) == speech_tokens(here.stdout)


def speech_tokens(said: str) -> list[str]:
    """The line that tells how many there are, and their hash."""
    return [line for line in said.splitlines() if line.startswith("speech tokens: ")]
