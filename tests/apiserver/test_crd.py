"""What the API server accepts as a CosyVoiceModel, and the words with which it refuses the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.control_plane import ControlPlane
from tests.unit.operator.test_pod_template import FULL

ROOT = Path(__file__).parents[2]
DIGEST = "sha256:" + "a" * 64


def manifest(namespace: str, name: str = "narrator", **spec: Any) -> str:
    wanted = {"version": "v1", "source": {"uri": "pvc://voices/model"}, **spec}
    metadata = {"name": name, "namespace": namespace}
    kind = {"apiVersion": "cosyvoice.dev/v1alpha1", "kind": "CosyVoiceModel"}
    return yaml.safe_dump({**kind, "metadata": metadata, "spec": wanted})


def refusal(plane: ControlPlane, text: str) -> str:
    """What `kubectl apply` says to a manifest that is refused."""
    done = plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
    assert done.returncode != 0, f"accepted: {text}"
    return done.stderr


ACCEPTED: dict[str, dict[str, Any]] = {
    "the least": {},
    "a digest": {"source": {"uri": "pvc://voices", "digest": DIGEST}},
    "a deep path": {"source": {"uri": "pvc://my.voices-1/a_b/c.d@1+2=3/"}},
    "a directory of the node": {"source": {"uri": "hostpath:///srv/models/v1"}},
    "quantities of every kind": {
        "staging": {"sizeLimit": 1073741824},
        "worker": {
            "resources": {"requests": {"memory": "1.5Gi", "cpu": 2}, "limits": {"memory": "2e9", "cpu": "2500m"}}
        },
    },
    "no replicas": {"worker": {"replicas": 0}},
    "float16 on cuda": {"engine": {"device": "cuda", "dtype": "float16"}},
    "everything else": {
        "version": "2026-11-30_a.B",
        "staging": {"medium": "Pod", "verify": "Always"},
        "engine": {
            "device": "cpu",
            "dtype": "bfloat16",
            "loadTimeoutSeconds": 1,
            "preload": False,
            "fallbackToCPU": True,
            "warmUp": {"texts": ["Hello."], "voice": "ann-1", "maxSeconds": 0.5},
        },
        "worker": {
            "image": "localhost:5000/worker@sha256:00",
            "nodeSelector": {"a/b": "c"},
            "tolerations": [{"operator": "Exists"}],
            "runtimeClassName": "nvidia",
            "priorityClassName": "high",
            "serviceAccountName": "speaker",
            "imagePullSecrets": [{"name": "registry"}],
            "env": [
                {"name": "A", "value": ""},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "antiAffinity": "None",
            "memoryHigh": "6.5Gi",
            "podTemplate": FULL,
        },
        "rollout": {"strategy": "Replace", "progressDeadlineSeconds": 10, "historyLimit": 0},
        "service": {"type": "NodePort", "port": 8080, "annotations": {"a": "b"}},
        "paused": True,
    },
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_it_is_accepted(control_plane: ControlPlane, spec: dict[str, Any]) -> None:
    done = control_plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=manifest("default", **spec))

    assert done.returncode == 0, done.stderr


URI = "spec.source.uri: Invalid value: {}: source.uri must be pvc://CLAIM[/PATH] or hostpath:///PATH"
DOTS = "spec.source.uri: Invalid value: {}: source.uri must not have a segment '.' or '..'"
VERSION = (
    "version must be a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
)
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"versions": "v1"}, 'strict decoding error: unknown field "spec.versions"'),
    ({"worker": {"memoryMax": "8Gi"}}, 'strict decoding error: unknown field "spec.worker.memoryMax"'),
    ({"worker": {"memoryHigh": "much"}}, "spec.worker.memoryHigh in body should match"),
    ({"engine": {"batching": {}}}, 'strict decoding error: unknown field "spec.engine.batching"'),
    ({"version": None}, "spec.version: Required value"),
    ({"source": {}}, "spec.source.uri: Required value"),
    ({"version": ""}, "spec.version: Invalid value"),
    ({"version": "-v1"}, VERSION),
    ({"version": "v1/2"}, VERSION),
    ({"version": "v" * 64}, "spec.version: Too long: may not be more than 63 bytes"),
    ({"version": 1}, 'spec.version: Invalid value: "integer": spec.version in body must be of type string: "integer"'),
    ({"source": {"uri": "s3://bucket/model"}}, URI.format('"s3://bucket/model"')),
    ({"source": {"uri": "pvc://Voices"}}, URI.format('"pvc://Voices"')),
    ({"source": {"uri": "pvc://voices//a"}}, URI.format('"pvc://voices//a"')),
    ({"source": {"uri": "hostpath://srv"}}, URI.format('"hostpath://srv"')),
    ({"source": {"uri": "hostpath:///"}}, URI.format('"hostpath:///"')),
    ({"source": {"uri": "pvc://voices/../etc"}}, DOTS.format('"pvc://voices/../etc"')),
    ({"source": {"uri": "hostpath:///srv/./a"}}, DOTS.format('"hostpath:///srv/./a"')),
    (
        {"source": {"uri": "pvc://voices", "digest": "sha256:ABC"}},
        "source.digest must be 'sha256:' and 64 lowercase hex digits",
    ),
    ({"staging": {"medium": "Node"}}, 'spec.staging.medium: Unsupported value: "Node": supported values: "Pod"'),
    ({"staging": {"sizeLimit": "8GB"}}, 'spec.staging.sizeLimit: Invalid value: "8GB"'),
    ({"staging": {"sizeLimit": "-8Gi"}}, 'spec.staging.sizeLimit: Invalid value: "-8Gi"'),
    (
        {"worker": {"resources": {"limits": {"memory": "much"}}}},
        'spec.worker.resources.limits.memory: Invalid value: "much"',
    ),
    ({"worker": {"replicas": -1}}, "spec.worker.replicas: Invalid value: -1"),
    (
        {"engine": {"device": "tpu"}},
        'spec.engine.device: Unsupported value: "tpu": supported values: "cuda", "cpu"',
    ),
    (
        {"engine": {"device": "cpu", "dtype": "float16"}},
        "engine.dtype float16 needs engine.device cuda: on a cpu use auto, float32 or bfloat16",
    ),
    ({"engine": {"loadTimeoutSeconds": 0}}, "spec.engine.loadTimeoutSeconds: Invalid value: 0"),
    ({"engine": {"warmUp": {"maxSeconds": 31}}}, "spec.engine.warmUp.maxSeconds: Invalid value: 31"),
    ({"engine": {"warmUp": {"texts": [""]}}}, "spec.engine.warmUp.texts[0]: Invalid value"),
    (
        {"engine": {"warmUp": {"voice": "Ann"}}},
        "engine.warmUp.voice must be the name of a voice, lowercase letters, digits and '-'",
    ),
    (
        {"worker": {"env": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "c"}}}]}},
        "an environment variable has either value or valueFrom",
    ),
    ({"worker": {"env": [{"name": "A"}, {"name": "A"}]}}, 'Duplicate value: {"name":"A"}'),
    ({"rollout": {"strategy": "Recreate"}}, 'spec.rollout.strategy: Unsupported value: "Recreate"'),
    ({"rollout": {"progressDeadlineSeconds": 5}}, "spec.rollout.progressDeadlineSeconds: Invalid value: 5"),
    ({"service": {"port": 0}}, "spec.service.port: Invalid value: 0"),
    ({"access": {"apiKeysSecret": "My Keys"}}, "access.apiKeysSecret must be the name of a Secret"),
    ({"service": {"type": "ExternalName"}}, 'spec.service.type: Unsupported value: "ExternalName"'),
]


@pytest.mark.parametrize(("spec", "words"), REFUSED, ids=[str(spec) for spec, _ in REFUSED])
def test_it_is_refused_in_these_words(control_plane: ControlPlane, spec: dict[str, Any], words: str) -> None:
    assert words in refusal(control_plane, manifest("default", **spec))


NAME = "metadata.name must be a DNS label: at most 63 lowercase letters, digits and '-'"


@pytest.mark.parametrize("name", ["1narrator", "narrator.v1", "n" * 64])
def test_a_name_that_no_service_can_have_is_refused(control_plane: ControlPlane, name: str) -> None:
    assert NAME in refusal(control_plane, manifest("default", name))


def test_a_name_of_63_characters_is_accepted(control_plane: ControlPlane) -> None:
    done = control_plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=manifest("default", "n" * 63))

    assert done.returncode == 0, done.stderr


def test_defaults_are_filled_in(control_plane: ControlPlane, namespace: str) -> None:
    assert control_plane.kubectl("apply", "-f", "-", stdin=manifest(namespace)).returncode == 0

    found = yaml.safe_load(control_plane.kubectl("-n", namespace, "get", "cvm", "narrator", "-o", "yaml").stdout)

    assert found["spec"] == {
        "version": "v1",
        "source": {"uri": "pvc://voices/model"},
        "staging": {"medium": "Pod", "sizeLimit": "8Gi", "verify": "Once"},
        "engine": {
            "dtype": "auto",
            "preload": True,
            "fallbackToCPU": False,
            "warmUp": {"maxSeconds": 1},
            "recycle": {},
        },
        "worker": {"replicas": 2, "antiAffinity": "Preferred", "resources": {}},
        "rollout": {
            "strategy": "RollingUpdate",
            "automaticRollback": True,
            "onNoCapacity": "Wait",
            "progressDeadlineSeconds": 600,
            "historyLimit": 5,
        },
        "service": {"type": "ClusterIP", "port": 80},
        "access": {},
        "paused": False,
    }


def test_columns_short_name_and_category(control_plane: ControlPlane, namespace: str) -> None:
    assert control_plane.kubectl("apply", "-f", "-", stdin=manifest(namespace)).returncode == 0

    narrow = control_plane.kubectl("-n", namespace, "get", "cvm").stdout.splitlines()[0].split()
    wide = control_plane.kubectl("-n", namespace, "get", "cvm", "-o", "wide").stdout.splitlines()[0].split()
    everything = control_plane.kubectl("-n", namespace, "get", "all", "-o", "name").stdout

    assert narrow == ["NAME", "VERSION", "TARGET", "READY", "STATUS", "AGE"]
    assert wide == [*narrow, "REVISION", "LOAD", "MESSAGE"]
    assert "cosyvoicemodel.cosyvoice.dev/narrator" in everything


def test_every_field_is_explained(control_plane: ControlPlane) -> None:
    for path in ("spec.source.uri", "spec.staging.sizeLimit", "spec.engine.warmUp", "spec.worker", "status.load"):
        text = control_plane.kubectl("explain", f"cosyvoicemodel.{path}").stdout
        assert "<empty>" not in text.split("FIELDS:")[0], path


def described(node: dict[str, Any], path: str = "cvm") -> Iterator[tuple[str, str]]:
    """(path, description) of every field below `node`; Kubernetes itself describes those of every object."""
    for name, field in node.get("properties", {}).items():
        if path != "cvm" or name in {"spec", "status"}:
            yield f"{path}.{name}", field.get("description", "")
            yield from described(field, f"{path}.{name}")
            yield from described(field.get("items", {}), f"{path}.{name}")


def test_every_field_has_words_of_its_own() -> None:
    crd = yaml.safe_load((ROOT / "crds" / "cosyvoicemodels.yaml").read_text())
    fields = dict(described(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))

    assert len(fields) > 100
    assert [path for path, text in fields.items() if not text.strip()] == []


@pytest.mark.parametrize(
    "field", ["spec.worker.podTemplate.spec.containers.volumeMounts.mountPath", "status.load.warmUp"]
)
def test_kubectl_explains_fields_however_deep(control_plane: ControlPlane, field: str) -> None:
    said = control_plane.kubectl("explain", f"cosyvoicemodels.{field}")

    assert said.returncode == 0, said.stderr
    assert "DESCRIPTION" in said.stdout
    assert "<no description>" not in said.stdout


def set_in(node: Any, path: str = "") -> Iterator[str]:
    """The path of every field that is set in `node`."""
    for name, value in node.items() if isinstance(node, dict) else ():
        yield f"{path}.{name}".lstrip(".")
        yield from set_in(value, f"{path}.{name}")


def test_the_full_example_is_accepted_and_leaves_no_part_of_the_spec_out(control_plane: ControlPlane) -> None:
    text = (ROOT / "examples" / "narrator-full.yaml").read_text()
    crd = yaml.safe_load((ROOT / "crds" / "cosyvoicemodels.yaml").read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

    done = control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)

    assert done.returncode == 0, done.stderr
    fields = {path.removeprefix("spec.") for path, _ in described(spec, "spec")}
    # The digest is one's own weights'; of what is laid over pods the example shows a few.
    shown = {path for path in fields if not path.startswith("worker.podTemplate.") and path != "source.digest"}
    listed = ("worker.tolerations.", "worker.env.", "worker.imagePullSecrets.")
    assert {path for path in shown if not path.startswith(listed)} - set(set_in(yaml.safe_load(text)["spec"])) == set()
