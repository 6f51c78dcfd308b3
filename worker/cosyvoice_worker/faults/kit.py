"""The faults there are, and how a bad directory is made of a good one."""

from __future__ import annotations

import shutil
from pathlib import Path

from cosyvoice_worker.faults import crafted, files, tensors, warmup
from cosyvoice_worker.faults.copy import Copy
from cosyvoice_worker.faults.fault import Damage, Fault
from cosyvoice_worker.outcome import Phase, Reason, fail

_FAULTS = (
    Fault(
        name="truncated-file",
        summary="a checkpoint is cut off in its middle",
        phase=Phase.STAGE,
        reason=Reason.TRUNCATED_FILE,
        damage=files.truncate,
    ),
    Fault(
        name="flipped-bit",
        summary="one bit of one weight is another, which only spec.source.digest tells",
        phase=Phase.STAGE,
        reason=Reason.DIGEST_MISMATCH,
        damage=files.flip_a_bit,
    ),
    Fault(
        name="lfs-pointer",
        summary="a checkpoint is still its git-lfs pointer",
        phase=Phase.STAGE,
        reason=Reason.LFS_POINTER,
        damage=files.leave_an_lfs_pointer,
    ),
    Fault(
        name="missing-file",
        summary="a checkpoint is not there",
        phase=Phase.STAGE,
        reason=Reason.MISSING_FILE,
        damage=files.leave_a_file_out,
    ),
    Fault(
        name="unknown-version",
        summary="the yaml's name is that of another generation",
        phase=Phase.STAGE,
        reason=Reason.UNKNOWN_VERSION,
        damage=files.rename_the_yaml,
    ),
    Fault(
        name="full-tmpfs",
        summary="the files are larger than the tmpfs",
        phase=Phase.STAGE,
        reason=Reason.OUT_OF_SPACE,
        damage=files.add_a_huge_file,
    ),
    Fault(
        name="source-gone",
        summary="nothing is left where the model was",
        phase=Phase.STAGE,
        reason=Reason.SOURCE_UNREACHABLE,
        damage=files.leave_nothing,
    ),
    Fault(
        name="unknown-class",
        summary="the yaml describes another model under this one's name",
        phase=Phase.MAP,
        reason=Reason.INCOMPATIBLE_MODEL,
        damage=files.name_an_unknown_class,
    ),
    Fault(
        name="missing-tensor",
        summary="a checkpoint lacks a tensor",
        phase=Phase.BUILD,
        reason=Reason.MISSING_TENSOR,
        damage=tensors.remove_a_tensor,
    ),
    Fault(
        name="unexpected-tensor",
        summary="a checkpoint has a tensor too many",
        phase=Phase.BUILD,
        reason=Reason.UNEXPECTED_TENSOR,
        damage=tensors.add_a_tensor,
    ),
    Fault(
        name="wrong-shape",
        summary="a tensor has another shape",
        phase=Phase.BUILD,
        reason=Reason.SHAPE_MISMATCH,
        damage=tensors.narrow_a_tensor,
    ),
    Fault(
        name="nan-weight",
        summary="weights are no numbers, which only a warm-up finds",
        phase=Phase.WARM_UP,
        reason=Reason.NON_FINITE_AUDIO,
        damage=tensors.fill_with_nan,
    ),
    Fault(
        name="silent-audio",
        summary="nothing is heard of what the model speaks",
        phase=Phase.WARM_UP,
        reason=Reason.SILENT_AUDIO,
        damage=tensors.silence,
    ),
    Fault(
        name="slow-load",
        summary="the model loads, but later than spec.engine.loadTimeoutSeconds may allow",
        phase=Phase.MAP,
        reason=Reason.LOAD_TIMEOUT,
        damage=crafted.load_slowly,
    ),
    Fault(
        name="hang-in-load",
        summary="loading does not come to its end",
        phase=Phase.MAP,
        reason=Reason.LOAD_TIMEOUT,
        damage=crafted.load_endlessly,
    ),
    Fault(
        name="hang-in-warm-up",
        summary="warming up does not come to its end",
        phase=Phase.WARM_UP,
        reason=Reason.LOAD_TIMEOUT,
        damage=warmup.warm_up_endlessly,
    ),
    Fault(
        name="crash-by-signal",
        summary="loading crashes the engine process",
        phase=Phase.MAP,
        reason=Reason.ENGINE_DIED,
        damage=crafted.crash,
    ),
    Fault(
        name="out-of-memory",
        summary="loading asks for more memory than there is",
        phase=Phase.MAP,
        reason=Reason.OUT_OF_MEMORY,
        damage=crafted.take_all_memory,
    ),
)

FAULTS = {fault.name: fault for fault in _FAULTS}


def make_bad(fault: Fault, good: Path, bad: Path) -> Damage:
    """Make `bad`, which must not exist yet, a copy of the model directory `good` with `fault`; what was done to it.

    Raises WorkerError: when `good` is no complete model or does not have what the fault changes, and when `bad` is in
    the way, lies in `good` or cannot be written.
    """
    _check_place(good, bad)
    partial = bad.with_name(bad.name + ".partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        damage = fault.damage(Copy.make(good, partial))
        partial.rename(bad)
    except OSError as error:
        place = error.filename or str(bad)
        message = f"{bad} cannot be made: {place}: {error.strerror or error}"
        raise fail(Reason.ACCESS_DENIED, Phase.STAGE, message, file=str(place)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return damage


def _check_place(good: Path, bad: Path) -> None:
    if bad.exists() or bad.is_symlink():
        message = f"{bad} is there already: name a directory that is not"
        raise fail(Reason.INVALID_CONFIG, Phase.STAGE, message, file=str(bad), expected="nothing")
    if bad.resolve().is_relative_to(good.resolve()):
        message = f"{bad} lies in the good directory {good}, which is never written to: name another place"
        raise fail(Reason.INVALID_CONFIG, Phase.STAGE, message, file=str(bad), expected=f"a place outside of {good}")
