"""API keys on the cluster: they are wanted, come and go without a restart, and stand nowhere."""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Iterator

import pytest

from dev.audit import AuditLog
from dev.playground import Playground
from dev.traffic import SPEECH, Client
from dev.waiting import wait_for
from tests.cluster.everything import places_of, said

MODEL = "guarded"
KEYS = "guarded-keys"


class Guarded:
    """A model that wants a key, and the keys there ever were."""

    def __init__(self, playground: Playground, path: str) -> None:
        self.playground = playground
        self.path = path
        self.keys: list[str] = []

    def new_key(self) -> str:
        self.keys.append(secrets.token_hex(24))
        return self.keys[-1]

    def put(self, secret: str, **keys: str) -> None:
        """The Secret, with these keys and no others. The kubelet looks at once where something is new on the pod."""
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": keys}
        self.playground.run("delete", "secret", secret, "--ignore-not-found")
        self.playground.run("create", "-f", "-", stdin=json.dumps(manifest))
        look = f"example.com/look={secrets.token_hex(4)}"
        for pod in self.playground.pods(MODEL):
            self.playground.run("annotate", "pod", pod["metadata"]["name"], "--overwrite", look)

    def apply(self, version: str, secret: str = KEYS) -> None:
        self.playground.apply_model(MODEL, path=self.path, version=version, access={"apiKeysSecret": secret})

    def speak(self, key: str | None) -> str | None:
        """Why the Service does not speak; None where it does."""
        return Client(self.address(), keep=False, api_key=key).speak(stream=False).error

    def opened(self, key: str | None) -> bool:
        """Whether a key gets past the guard. Nothing is spoken: there is nothing in the body."""
        connection = http.client.HTTPConnection(self.address(), timeout=10)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        connection.request("POST", SPEECH, b"{}", headers)
        status = connection.getresponse().status
        connection.close()
        assert status in (400, 401)
        return status == 400

    def address(self) -> str:
        address: str = self.playground.get("service", MODEL)["spec"]["clusterIP"]
        return address

    def lives(self) -> list[tuple[str, int]]:
        return [
            (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
            for pod in self.playground.pods(MODEL)
        ]

    def waiting_for(self, reason: str) -> str:
        """Wait for this reason of the newest spec; its message."""

        def probe() -> str | None:
            model = self.playground.model(MODEL)
            status = model["status"]
            current = status["observedGeneration"] == model["metadata"]["generation"]
            return str(status["message"]) if current and status["reason"] == reason else None

        return wait_for(reason, probe, timeout=180) or ""


@pytest.fixture(scope="module")
def guarded(shared_playground: Playground, tiny_path: str) -> Iterator[Guarded]:
    """A model that serves and wants one of the keys of a Secret, `ann` for a start."""
    guarded = Guarded(shared_playground, tiny_path)
    guarded.put(KEYS, ann=guarded.new_key())
    guarded.apply("v1")
    shared_playground.wait_ready(MODEL)
    return guarded


def test_whoever_has_a_key_speaks_and_nobody_else(guarded: Guarded) -> None:
    assert guarded.speak(guarded.keys[0]) is None
    for key in (None, guarded.new_key()):
        assert "401: " in (guarded.speak(key) or "")


def test_keys_are_changed_under_a_running_worker(guarded: Guarded) -> None:
    before = guarded.lives()
    old, new = guarded.keys[0], guarded.new_key()

    guarded.put(KEYS, ann=old, ben=new)
    wait_for("the new key", lambda: guarded.opened(new), timeout=150)
    assert guarded.opened(old)
    guarded.put(KEYS, ben=new)
    wait_for("the end of the old key", lambda: not guarded.opened(old), timeout=150)

    assert guarded.opened(new)
    assert guarded.lives() == before
    guarded.keys.insert(0, new)


def test_without_its_secret_a_version_is_not_begun_and_the_one_before_serves(guarded: Guarded) -> None:
    guarded.apply("v2", "no-such-secret")

    assert "no-such-secret" in guarded.waiting_for("FailedMount")
    assert (guarded.opened(guarded.keys[0]), guarded.opened(None)) == (True, False)


def test_a_secret_without_a_key_is_told_and_lets_nobody_in(guarded: Guarded) -> None:
    guarded.put("empty-secret", ann="hunter2")
    guarded.apply("v3", "empty-secret")

    message = guarded.waiting_for("RolledBack")
    assert "there is no API key that can be used (ann: 7 bytes, expected 16 to 512)" in message
    assert (guarded.opened(guarded.keys[0]), guarded.opened(None)) == (True, False)


def test_no_key_stands_anywhere(guarded: Guarded, audit_log: AuditLog) -> None:
    texts = said(guarded.playground, MODEL, audit_log.path.parent)

    worker_logs = "".join(text for place, text in texts.items() if place.startswith("log of guarded"))
    assert "API keys read" in worker_logs, "the search would prove nothing if it did not see what is written about keys"
    assert '"ben"' in worker_logs
    assert {place: places for place in guarded.keys if (places := places_of(place, texts))} == {}
