"""What is taken over from the machine that builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.images import base, host
from dev.images.host import Mirrors

DEBIAN = """\
Debian Debian http://mirror.example.com/debian/
Debian Debian http://mirror.example.com/debian/
Debian Debian-Security http://mirror.example.com/security/
"""
OTHERS = "Ubuntu Ubuntu http://mirror.example.com/ubuntu/\n$(ORIGIN) $(LABEL) http://packages.example.com/apt/\n"


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (DEBIAN, Mirrors("http://mirror.example.com/debian", "http://mirror.example.com/security")),
        (OTHERS + DEBIAN, Mirrors("http://mirror.example.com/debian", "http://mirror.example.com/security")),
        ("Debian Debian http://one.example.com/d\n", Mirrors("http://one.example.com/d", None)),
        (OTHERS, None),
        ("", None),
    ],
    ids=["Debian", "Debian among others", "no security updates", "Ubuntu", "no repository"],
)
def test_the_mirror_is_the_one_that_apt_uses(targets: str, expected: Mirrors | None) -> None:
    assert host.parse_index_targets(targets) == expected


def test_a_mirror_can_be_named_where_apt_has_none() -> None:
    env = {"DEBIAN_MIRROR": "http://a.example.com/debian", "DEBIAN_SECURITY_MIRROR": "http://a.example.com/security"}

    assert host.debian_mirrors(env) == Mirrors("http://a.example.com/debian", "http://a.example.com/security")


@pytest.mark.parametrize(("security", "suites"), [("http://m.example.com/s", 3), (None, 2)])
def test_the_base_image_keeps_the_sources_it_was_made_from(security: str | None, suites: int) -> None:
    arguments = base.bootstrap_command(Path("base.tar"), Mirrors("http://m.example.com/debian", security))

    sources = [argument for argument in arguments if argument.startswith("deb ")]
    assert len(sources) == suites
    assert all("signed-by=/usr/share/keyrings/debian-archive-trixie" in source for source in sources)


def test_pip_settings_come_from_files_and_the_environment_wins(tmp_path: Path) -> None:
    everyone, user = tmp_path / "pip.conf", tmp_path / "user.conf"
    everyone.write_text(
        "[global]\nindex-url = https://a.example.com\nproxy = http://proxy.example.com\ncert = /here/ca\n"
    )
    user.write_text("[global]\nindex-url = https://b.example.com\nextra-index-url =\n  https://c.example.com\n")

    settings = host.pip_settings({"PIP_PROXY": "http://other.example.com"}, (everyone, user, tmp_path / "missing"))

    assert settings == {
        "index-url": "https://b.example.com",
        "extra-index-url": "https://c.example.com",
        "proxy": "http://other.example.com",
    }


def test_the_secrets_name_the_certificates_by_their_path_in_the_build() -> None:
    with host.pip_secrets() as secrets:
        configuration = secrets["pipconf"].read_text()

    assert ("cert = /run/ca.crt" in configuration) == ("ca" in secrets)
    assert not secrets["pipconf"].exists()


@pytest.mark.parametrize("variable", ["PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_certificates_named_in_the_environment_are_used(variable: str) -> None:
    assert host.certificate_file({variable: "/etc/own.pem"}) == Path("/etc/own.pem")
