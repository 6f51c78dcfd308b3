"""Which voices there are, while packs come, go and break."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cosyvoice_worker.voices import files
from cosyvoice_worker.voices.errors import UnknownVoiceError, VoiceError
from cosyvoice_worker.voices.pack import Pack
from cosyvoice_worker.voices.registry import VoiceRegistry, model_voices

Put = Callable[..., Path]


@pytest.fixture
def put(ann: Pack, tmp_path: Path) -> Put:
    def put(directory: str, name: str, prompt_text: str = "Hello.") -> Path:
        path = tmp_path / directory / f"{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        files.write(replace(ann, prompt_text=prompt_text), path)
        return path

    return put


@pytest.fixture
def registry(tmp_path: Path) -> VoiceRegistry:
    (tmp_path / "voices").mkdir()
    return model_voices(tmp_path, tmp_path / "configmap")


def test_without_packs_there_are_no_voices(tmp_path: Path) -> None:
    assert model_voices(tmp_path, tmp_path / "configmap").names() == []


def test_voices_of_both_places_are_listed_by_name(registry: VoiceRegistry, put: Put) -> None:
    put("voices", "zoe")
    put("configmap", "bob")
    put("voices", "ann")

    assert registry.names() == ["ann", "bob", "zoe"]
    assert registry.voices()["ann"].seconds == 0.08
    assert registry.voices()["ann"].prompt_text == "Hello."


def test_the_configmap_wins(registry: VoiceRegistry, put: Put) -> None:
    put("voices", "ann", "The model's.")
    configmap = put("configmap", "ann", "The ConfigMap's.")
    assert registry.read("ann").prompt_text == "The ConfigMap's."

    configmap.unlink()

    assert registry.read("ann").prompt_text == "The model's."


def test_a_new_pack_is_there_at_the_next_use(registry: VoiceRegistry, put: Put) -> None:
    assert registry.names() == []
    path = put("configmap", "ann", "First.")
    assert registry.names() == ["ann"]

    files.write(replace(files.read(path), prompt_text="Changed."), path)

    assert registry.voices()["ann"].prompt_text == "Changed."
    assert registry.read("ann").prompt_text == "Changed."


def test_an_updated_configmap_mount_is_followed(registry: VoiceRegistry, put: Put, tmp_path: Path) -> None:
    """As the kubelet does it: the files are links through `..data`, which is swapped for another directory."""
    mount = tmp_path / "configmap"
    mount.mkdir()
    (mount / "ann.safetensors").symlink_to("..data/ann.safetensors")
    for version, text in (("..1", "Old."), ("..2", "New.")):
        put(f"configmap/{version}", "ann", text)
        (mount / "..tmp").symlink_to(version)
        (mount / "..tmp").rename(mount / "..data")

        assert registry.names() == ["ann"]
        assert registry.read("ann").prompt_text == text


def test_a_broken_pack_is_listed_with_its_reason_and_breaks_no_other(registry: VoiceRegistry, put: Put) -> None:
    put("voices", "ann")
    broken = put("voices", "bob")
    os.truncate(broken, 1000)

    assert registry.names() == ["ann"]
    reason = f"{broken}: prompt_mel: truncated: expected 1288 bytes of data, got"
    assert str(registry.voices()["bob"].broken).startswith(reason)
    with pytest.raises(VoiceError) as refused:
        registry.read("bob")
    assert str(refused.value).startswith(reason)


def test_a_broken_pack_works_again_once_it_is_mended(registry: VoiceRegistry, put: Put) -> None:
    os.truncate(put("voices", "ann"), 10)
    assert registry.names() == []

    put("voices", "ann")

    assert registry.names() == ["ann"]


def test_a_broken_override_does_not_let_another_voice_speak(registry: VoiceRegistry, put: Put) -> None:
    put("voices", "ann")
    os.truncate(put("configmap", "ann"), 100)

    assert registry.names() == []
    with pytest.raises(VoiceError, match="truncated"):
        registry.read("ann")


def test_an_unknown_voice_is_answered_with_the_names_there_are(registry: VoiceRegistry, put: Put) -> None:
    put("voices", "ann")
    put("voices", "bob")
    os.truncate(put("voices", "cut"), 10)

    with pytest.raises(UnknownVoiceError) as refused:
        registry.read("alloy")

    assert str(refused.value) == "there is no voice 'alloy'; there are: ann, bob"


def test_an_unknown_voice_among_many_is_answered_briefly(registry: VoiceRegistry, put: Put) -> None:
    for number in range(25):
        put("voices", f"v{number:02}")

    with pytest.raises(UnknownVoiceError, match=r"there are: v00, .*, v19 and 5 more$"):
        registry.read("x" * 100_000)


@pytest.mark.parametrize("name", ["../ann", "..", "", "Ann", "ann.safetensors", "a/b", "/etc/passwd", "a\x00b"])
def test_a_name_is_never_a_path(name: str, registry: VoiceRegistry, put: Put) -> None:
    put("voices", "ann")
    put("", "ann")

    with pytest.raises(UnknownVoiceError):
        registry.read(name)


def test_a_file_whose_name_cannot_be_a_voice_s_is_listed_as_broken(registry: VoiceRegistry, put: Put) -> None:
    path = put("voices", "ann")
    path.rename(os.fsdecode(os.fsencode(path.parent) + b"/\xffAnn.safetensors"))

    (listed,) = registry.voices().values()

    assert listed.name == r"\xffAnn"
    assert "voice name: expected 1 to 63 of a-z, 0-9 and -" in str(listed.broken)


def test_a_pack_of_another_family_is_told_apart(tmp_path: Path, put: Put) -> None:
    put("voices", "ann")

    listed = VoiceRegistry([tmp_path / "voices"], family="cosyvoice9").voices()["ann"]

    assert str(listed.broken).endswith("of another model family: expected cosyvoice9, got cosyvoice2")


def test_listing_voices_imports_neither_numpy_nor_torch() -> None:
    code = "import sys, cosyvoice_worker.voices.registry as r; print({'numpy', 'torch'} & set(sys.modules))"
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}

    imported = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)

    assert imported.stdout.decode() == "set()\n"
