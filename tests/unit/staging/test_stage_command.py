"""`cosyvoice-worker stage` as the kubelet runs it: exit codes, termination messages, signals, permissions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

# Enough that copying it takes longer than noticing that it has begun. It holds no data on the disk.
SLOW_BYTES = 3 * 2**30


def add_slow_file(model: Path) -> None:
    with (model / "CosyVoice-BlankEN" / "added_tokens.json").open("wb") as file:
        file.truncate(SLOW_BYTES)


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{path} did not appear")
        time.sleep(0.002)


def test_success_is_told_by_message_pointer_and_one_log_line(stage_command):
    run = stage_command.run()

    pointer = json.loads((stage_command.root / "staged.json").read_text())
    assert run.code == 0
    assert list(run.message) == [
        "schema", "reason", "phase", "retryable", "elapsedSeconds", "digest", "bytes", "message",
    ]  # fmt: skip
    assert (run.message["reason"], run.message["message"]) == (
        "Staged",
        "9 files of pvc://voices/CosyVoice2-0.5B staged",
    )
    assert (run.message["digest"], run.message["bytes"]) == (pointer["digest"], pointer["bytes"])
    assert pointer.keys() == {"schema", "revision", "digest", "directory", "bytes", "seconds", "files"}
    assert [(line["level"], line["message"]) for line in run.log] == [("info", run.message["message"])]
    assert {"model": "narrator", "revision": "3f9a1c0b7d", "program": "stage"}.items() <= run.log[0].items()


def test_a_second_run_says_that_it_was_staged_already(stage_command):
    first = stage_command.run()

    second = stage_command.run()

    assert (second.code, second.message["digest"]) == (0, first.message["digest"])
    assert second.log[0]["message"] == "already staged"


BAD_MODELS = [
    ("llm.pt missing", (66, "MissingFile", "llm.pt")),
    ("flow.pt truncated", (65, "TruncatedFile", "flow.pt")),
    ("hift.pt empty", (65, "TruncatedFile", "hift.pt")),
    ("llm.pt pointer", (65, "LFSPointer", "llm.pt")),
    ("cosyvoice2.yaml renamed", (66, "UnknownVersion", "cosyvoice9.yaml")),
]


@pytest.mark.parametrize(("damage", "told"), BAD_MODELS)
def test_a_bad_model_ends_with_its_code_and_names_the_file(stage_command, model, damage, told):
    name, kind = damage.split()
    path = model / name
    match kind:
        case "missing":
            path.unlink()
        case "truncated":
            path.write_bytes(path.read_bytes()[:5000])
        case "empty":
            path.write_bytes(b"")
        case "pointer":
            path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 2023316821\n")
        case "renamed":
            path.rename(model / "cosyvoice9.yaml")

    run = stage_command.run()

    assert (run.code, run.message["reason"], run.message["file"]) == told
    assert (run.message["phase"], run.message["retryable"]) == ("Stage", False)
    assert [(line["level"], line["message"]) for line in run.log] == [("error", run.message["message"])]
    assert {path.name for path in stage_command.root.iterdir()} == {".lock"}


def test_a_wrong_configuration_ends_with_64_and_names_every_field(stage_command):
    stage_command.document["engine"]["devize"] = "cpu"
    del stage_command.document["engine"]["device"]
    stage_command.document["staging"]["sizeLimitBytes"] = "8Gi"

    run = stage_command.run()

    assert (run.code, run.message["reason"]) == (64, "InvalidConfig")
    assert run.message["message"] == (
        f"{stage_command.config}: staging.sizeLimitBytes: expected `int`, got `str`; engine.device: missing; "
        "engine.devize: unknown field (known: device, warmUp, loadTimeoutSeconds, dtype, preload, fallbackToCPU, "
        "recycle)"
    )


def test_sigterm_ends_it_with_143_and_leaves_no_partial_copy(stage_command, model):
    add_slow_file(model)
    process = stage_command.start()
    wait_for(stage_command.root / "incoming.partial")

    process.send_signal(signal.SIGTERM)
    run = stage_command.finish(process)

    assert run.code == 128 + signal.SIGTERM
    assert {path.name for path in stage_command.root.iterdir()} == {".lock"}


def test_progress_can_be_seen_while_it_works(stage_command, model):
    add_slow_file(model)
    process = stage_command.start()
    wait_for(stage_command.root / "progress.json")

    progress = json.loads((stage_command.root / "progress.json").read_text())
    process.send_signal(signal.SIGTERM)
    stage_command.finish(process)

    assert progress.keys() == {"revision", "file", "doneBytes", "totalBytes"}
    assert progress["totalBytes"] > SLOW_BYTES


def test_a_killed_stager_is_succeeded_by_the_next(stage_command, model):
    add_slow_file(model)
    process = stage_command.start()
    wait_for(stage_command.root / "incoming.partial")
    process.kill()
    stage_command.finish(process)
    (model / "CosyVoice-BlankEN" / "added_tokens.json").unlink()

    run = stage_command.run()

    assert run.code == 0
    assert not (stage_command.root / "incoming.partial").exists()


@pytest.mark.parametrize("milliseconds", range(60, 300, 20))
def test_killed_at_any_moment_it_is_succeeded_by_the_next(stage_command, model, milliseconds):
    process = stage_command.start()
    time.sleep(milliseconds / 1000)
    process.kill()
    stage_command.finish(process)

    run = stage_command.run()

    assert run.code == 0
    (version,) = (path for path in stage_command.root.iterdir() if len(path.name) == 64)
    assert (version / "llm.pt").read_bytes() == (model / "llm.pt").read_bytes()
    assert not (stage_command.root / "incoming.partial").exists()


def test_a_source_that_stands_still_ends_with_69(stage_command, model):
    add_slow_file(model)
    process = stage_command.start("--stall-seconds", "1")
    wait_for(stage_command.root / "incoming.partial" / "CosyVoice-BlankEN" / "added_tokens.json")

    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGSTOP)
    run = stage_command.finish(process)

    assert (run.code, run.message["reason"], run.message["retryable"]) == (69, "SourceUnreachable", True)
    assert run.message["file"] == "CosyVoice-BlankEN/added_tokens.json"
    assert {path.name for path in stage_command.root.iterdir()} == {".lock"}


def test_two_stagers_at_once_stage_once(stage_command):
    stage_command.root.mkdir()
    processes = [stage_command.start() for _ in range(2)]

    runs = [stage_command.finish(process) for process in processes]

    assert [run.code for run in runs] == [0, 0]
    assert sorted(run.log[0]["message"] for run in runs) == [
        "9 files of pvc://voices/CosyVoice2-0.5B staged",
        "already staged",
    ]


def test_a_file_that_may_not_be_read_is_access_denied(stage_command, model):
    (model / "flow.pt").chmod(0)

    # In a user namespace of its own not even root may read everything.
    run = stage_command.run("unshare", "--user", "--")

    assert (run.code, run.message["reason"], run.message["file"]) == (77, "AccessDenied", "flow.pt")
    assert run.message["message"] == (
        "flow.pt cannot be read: Permission denied; the pod's user needs read access to the source"
    )


def test_a_tmpfs_that_fills_up_in_mid_copy_is_told_and_left_empty(stage_command):
    stage_command.root.mkdir()
    # Room for the lock, the progress file and a few more inodes: nothing that could be seen beforehand.
    root = stage_command.root
    command = f'mount -t tmpfs -o nr_inodes=7 none {root} && "$@"; code=$?; ls -A {root} >&2; exit $code'

    process = stage_command.start(before=["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command, "sh"])
    _, errors = process.communicate(timeout=120)

    message = json.loads(stage_command.termination_log.read_text())
    assert (process.returncode, message["reason"], message["retryable"]) == (71, "OutOfSpace", True)
    assert message["message"].endswith(
        "No space left on device; raise spec.staging.sizeLimit, or the memory limit of the stage container"
    )
    assert [line for line in errors.splitlines() if not line.startswith("{")] == [".lock"]


def test_an_unmounted_source_is_unreachable_and_worth_a_retry(stage_command, model):
    stage_command.document["source"]["path"] = "/nowhere/CosyVoice2-0.5B"

    run = stage_command.run()

    assert (run.code, run.message["reason"], run.message["retryable"]) == (69, "SourceUnreachable", True)
    assert run.message["message"] == "/nowhere/CosyVoice2-0.5B is not there: the source is not mounted"


def test_without_a_kubelet_no_termination_file_is_made(stage_command):
    arguments = stage_command.arguments()
    stage_command.termination_log.unlink()

    assert subprocess.run(arguments, check=False).returncode == 0
    assert not stage_command.termination_log.exists()
