"""How a container outside Kubernetes is confined."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.images.bundle import Mount, merged_env, numeric_user, runtime_config
from dev.images.errors import ImageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/models:/source", Mount(Path("/models"), "/source", writable=False)),
        ("/models:/source:ro", Mount(Path("/models"), "/source", writable=False)),
        ("/out:/out:rw", Mount(Path("/out"), "/out", writable=True)),
    ],
)
def test_a_mount_is_read(text: str, expected: Mount) -> None:
    assert Mount.parse(text) == expected


@pytest.mark.parametrize("text", ["", "/models", ":/source", "/models:source", "/models:/source:yes"])
def test_what_is_no_mount_is_refused(text: str) -> None:
    with pytest.raises(ImageError, match="a mount is SOURCE:TARGET or SOURCE:TARGET:rw"):
        Mount.parse(text)


def test_the_user_is_read() -> None:
    assert numeric_user("10001:65534") == (10001, 65534)


@pytest.mark.parametrize("user", ["", "cosyvoice", "10001", "10001:nogroup", "-1:0"])
def test_a_user_that_kubernetes_could_not_check_is_refused(user: str) -> None:
    with pytest.raises(ImageError, match="expected UID:GID in numbers"):
        numeric_user(user)


def test_the_environment_given_wins_over_the_images() -> None:
    assert merged_env(["PATH=/bin", "HOME=/tmp"], {"HOME": "/home", "SEED": "a=b"}) == [
        "PATH=/bin",
        "HOME=/home",
        "SEED=a=b",
    ]


def test_a_container_has_no_more_rights_than_a_restricted_pod() -> None:
    config = runtime_config(
        name="c", arguments=["id"], user=(10001, 65534), env=[], mounts=[Mount(Path("/m"), "/source")]
    )

    assert config["root"]["readonly"]
    assert config["process"]["noNewPrivileges"]
    assert not any(config["process"]["capabilities"].values())
    assert {"type": "network"} in config["linux"]["namespaces"]
    assert "ro" in config["mounts"][-1]["options"]
