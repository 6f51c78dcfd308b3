"""Docker archives: writing one for a single static binary, and reading which image an archive holds."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from dev.cluster.errors import ArchiveError


def write(target: Path, reference: str, binary: Path, architecture: str = "amd64") -> str:
    """Write an image that holds one executable, its entry point; returns the image ID, the same for the same binary."""
    layer = _tar({binary.name: (binary.read_bytes(), 0o755)})
    configuration = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": [f"/{binary.name}"], "User": "65532:65532", "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    encoded = json.dumps(configuration).encode()
    image = hashlib.sha256(encoded).hexdigest()
    manifest = [{"Config": f"{image}.json", "RepoTags": [reference], "Layers": ["layer.tar"]}]
    content = {f"{image}.json": encoded, "layer.tar": layer, "manifest.json": json.dumps(manifest).encode()}
    target.write_bytes(_tar({name: (data, 0o644) for name, data in content.items()}))
    return f"sha256:{image}"


def inspect(archive: Path) -> tuple[str, str]:
    """The reference and the image ID (`sha256:…`) of an archive that holds one tagged image."""
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile("manifest.json")
            manifest = json.load(member) if member else []
            if len(manifest) != 1 or not manifest[0].get("RepoTags"):
                raise ArchiveError(f"{archive}: expected one image with a tag, found {json.dumps(manifest)[:200]}")
            configuration = tar.extractfile(manifest[0]["Config"])
            if configuration is None:
                raise ArchiveError(f"{archive}: {manifest[0]['Config']} is no file")
            return manifest[0]["RepoTags"][0], f"sha256:{hashlib.sha256(configuration.read()).hexdigest()}"
    except (OSError, KeyError, tarfile.TarError, json.JSONDecodeError) as error:
        raise ArchiveError(
            f"{archive}: not a docker-archive ({error}). `docker save` and `buildah push ID docker-archive:…` write one"
        ) from error


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    """A tar of files by name, contents and mode, without owners or times."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
