"""The build commands, and reading what buildah and the kernel say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker._version import __version__
from dev.images import builder, command, delivery, locks, packages, storage
from dev.images.errors import ImageError
from dev.images.layout import REPOSITORY

MOUNTS = """\
/dev/vda / ext4 rw 0 0
overlay /cache/storage/graph/overlay/1/merged overlay rw 0 0
overlay /cache/storage/graph/overlay/with\\040space overlay rw 0 0
tmpfs /cache/storage-of-another tmpfs rw 0 0
"""
INSPECTED = {
    "OCIv1": {
        "config": {
            "User": "10001:65534",
            "Entrypoint": ["cosyvoice-worker"],
            "Env": ["HOME=/tmp"],
            "Labels": {"org.opencontainers.image.title": "cosyvoice-worker"},
            "ExposedPorts": {"8000/tcp": {}, "8081/tcp": {}},
        },
        "rootfs": {"diff_ids": ["sha256:1", "sha256:2"]},
    }
}


@pytest.mark.parametrize("kind", ["operator", "worker"])
def test_a_build_uses_the_ordinary_dockerfile_on_the_repository(kind: str) -> None:
    arguments = builder.build_arguments(kind, "localhost/name:latest", {"ca": "/ca.crt"})

    assert f"--file={REPOSITORY / f'Dockerfile.{kind}'}" in arguments
    assert "--secret=id=ca,src=/ca.crt" in arguments
    assert arguments[-1] == str(REPOSITORY)


def test_the_worker_for_gpus_is_the_same_dockerfile_for_another_device() -> None:
    arguments = builder.build_arguments("worker-cuda", "localhost/name:latest", {})

    assert f"--file={REPOSITORY / 'Dockerfile.worker'}" in arguments
    assert "--build-arg=DEVICE=cuda" in arguments
    assert not any("DEVICE" in word for word in builder.build_arguments("worker", "localhost/name:latest", {}))


def test_nothing_but_content_and_version_goes_into_a_build() -> None:
    """The image ID is the key by which an import is skipped: a time or a commit in it would defeat that."""
    options = [
        word for word in builder.build_arguments("worker", "n", {}) if word.startswith(("--build-arg", "--time"))
    ]

    assert [option.split("=")[:2] for option in options] == [
        ["--timestamp", "1750000000"],
        ["--build-arg", "VERSION"],
    ]


def test_a_build_is_labelled_whatever_the_cache_holds() -> None:
    assert f"--label=org.opencontainers.image.version={__version__}" in builder.build_arguments("operator", "n", {})


def test_an_images_configuration_is_read() -> None:
    config = storage.parse_config(INSPECTED)

    assert config.user == "10001:65534"
    assert config.entrypoint == ("cosyvoice-worker",)
    assert config.command == ()
    assert config.labels["org.opencontainers.image.title"] == "cosyvoice-worker"
    assert config.ports == {"8000/tcp", "8081/tcp"}
    assert config.layers == 2


def test_only_mounts_inside_the_folder_are_found() -> None:
    found = storage.mounts_below(Path("/cache/storage"), MOUNTS)

    assert found == [
        Path("/cache/storage/graph/overlay/1/merged"),
        Path("/cache/storage/graph/overlay/with space"),
    ]


def test_a_lock_that_is_held_in_common_is_not_taken_exclusively(tmp_path: Path) -> None:
    with locks.held(tmp_path / "lock", shared=True), locks.tried(tmp_path / "lock") as alone:
        assert not alone
    with locks.tried(tmp_path / "lock") as alone:
        assert alone


@pytest.mark.parametrize(
    ("registry", "options"),
    [
        ("localhost:5000", ["--tls-verify=false"]),
        ("127.0.0.1:5000/team", ["--tls-verify=false"]),
        ("[::1]:5000", ["--tls-verify=false"]),
        ("registry.example.com:5000/team", []),
        ("localhost.example.com", []),
    ],
)
def test_only_a_registry_on_this_machine_is_spoken_to_in_the_clear(registry: str, options: list[str]) -> None:
    assert delivery.tls_options(registry) == options


def test_packages_are_installed_by_hash_and_never_built() -> None:
    arguments = packages.install_arguments(Path("list.txt"), Path("target"))

    assert {"--require-hashes", "--no-deps", "--only-binary=:all:", "--python-version=3.13"} <= set(arguments)


def test_a_failing_program_is_quoted_with_its_last_words() -> None:
    with pytest.raises(ImageError, match=r"(?s)`sh -c .*` ended with exit code 3:\nout of space"):
        command.output(["sh", "-c", "echo out of space >&2; exit 3"])


def test_a_missing_program_is_named_with_how_to_get_it() -> None:
    with pytest.raises(ImageError, match=r"the program no-such-program is missing; `dev/packages\.sh install`"):
        command.output(["no-such-program"])


def test_a_long_build_shows_its_steps_and_keeps_the_rest_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "build.log"

    command.logged(["printf", "[1/2] STEP 1/3: FROM a\nGet:1 package\n"], log, builder.STEP, env={})

    assert capsys.readouterr().out == "  [1/2] STEP 1/3: FROM a\n"
    assert log.read_text() == "[1/2] STEP 1/3: FROM a\nGet:1 package\n"


def test_a_failed_build_says_where_the_log_is_and_how_it_ends(tmp_path: Path) -> None:
    log = tmp_path / "build.log"

    with pytest.raises(
        ImageError, match=r"(?s)sh ended with exit code 1; from its output, .*build\.log:\nno such package"
    ):
        command.logged(
            ["sh", "-c", "echo no such package >&2; exit 1"], log, builder.STEP, env={"PATH": "/usr/bin:/bin"}
        )
