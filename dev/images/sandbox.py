"""Run a command inside an image, outside Kubernetes: the image's user, a read-only root, no network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dev.images import command, host, locks, references
from dev.images.bundle import Mount, merged_env, numeric_user, runtime_config
from dev.images.errors import ImageError
from dev.images.layout import Layout
from dev.images.storage import Storage, open_storage

# In a mount namespace of its own, so that no mount outlives the container, however it ends.
SCRIPT = """
root=$(buildah mount "$1")
mount --bind "$root" "$2/rootfs"
exec runc --root "$3" run --bundle "$2" "$1"
"""


def run(
    layout: Layout,
    kind: str,
    arguments: Sequence[str],
    *,
    mounts: Sequence[Mount] = (),
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the whole command line `arguments` in the newest image of `kind` ("operator", "worker").

    Its exit code and output are in the result; `timeout` is in seconds (subprocess.TimeoutExpired).
    """
    with _container(layout, kind, arguments, mounts, env or {}, terminal=False) as (launcher, storage):
        return subprocess.run(
            launcher,
            env=storage.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def run_in_terminal(
    layout: Layout, kind: str, arguments: Sequence[str], *, mounts: Sequence[Mount], env: Mapping[str, str]
) -> int:
    """The same with this process's own input and output; the exit code."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with _container(layout, kind, arguments, mounts, env, terminal=terminal) as (launcher, storage):
        return subprocess.run(launcher, env=storage.env, check=False).returncode


@contextmanager
def _container(
    layout: Layout,
    kind: str,
    arguments: Sequence[str],
    mounts: Sequence[Mount],
    env: Mapping[str, str],
    *,
    terminal: bool,
) -> Iterator[tuple[list[str], Storage]]:
    """A container that is ready to start: yields the command line that starts it and waits for its end."""
    host.prepare()
    for mount in mounts:
        if not mount.source.exists():
            raise ImageError(f"{mount.source}, to be mounted at {mount.target}, does not exist")
    with locks.held(layout.use_lock, shared=True):
        storage = open_storage(layout)
        image = getattr(references.read(layout.references), kind)
        config = storage.image_config(image.id)
        name = f"cosyvoice-run-{uuid.uuid4().hex[:12]}"
        bundle = layout.scratch / name
        storage.output("from", "--pull-never", "--name", name, image.id)
        try:
            (bundle / "rootfs").mkdir(parents=True)
            document = runtime_config(
                name=name,
                arguments=arguments,
                user=numeric_user(config.user),
                env=merged_env(config.env, env),
                mounts=mounts,
                terminal=terminal,
            )
            (bundle / "config.json").write_text(json.dumps(document), encoding="utf-8")
            words = ["unshare", "--mount", "--propagation=private", "sh", "-ec", SCRIPT, "sh"]
            yield [*words, name, str(bundle), str(layout.runtime_state)], storage
        finally:
            _remove(storage, name, bundle)


def _remove(storage: Storage, name: str, bundle: Path) -> None:
    """Kill what still runs (after a timeout), and delete the container."""
    with suppress(ImageError):  # runc deletes a container that has ended by itself
        command.output(["runc", "--root", str(storage.layout.runtime_state), "delete", "--force", name])
    storage.output("rm", name)
    shutil.rmtree(bundle, ignore_errors=True)
