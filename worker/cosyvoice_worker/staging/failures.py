"""Errors of the operating system, told as what they mean for a source or for the tmpfs."""

from __future__ import annotations

import errno

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail

DENIED = frozenset({errno.EACCES, errno.EPERM})
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EFBIG})


def source_failure(error: OSError, file: str) -> WorkerError:
    """Reading `file` of the source failed: AccessDenied by its permissions, else SourceUnreachable (retryable)."""
    if error.errno in DENIED:
        return fail(
            Reason.ACCESS_DENIED,
            Phase.STAGE,
            f"{file} cannot be read: {error.strerror}; the pod's user needs read access to the source",
            file=file,
        )
    return fail(
        Reason.SOURCE_UNREACHABLE, Phase.STAGE, f"{file} cannot be read from the source: {error.strerror}", file=file
    )


def target_failure(error: OSError, file: str, so_far: str = "") -> WorkerError:
    """Writing `file` to the tmpfs failed: OutOfSpace when it is full, AccessDenied otherwise.

    `so_far` tells how far the copy came ("after 5 of 9 bytes").
    """
    if error.errno in NO_ROOM:
        return fail(
            Reason.OUT_OF_SPACE,
            Phase.STAGE,
            f"no room left in the tmpfs for {file}{so_far and ' '}{so_far}: {error.strerror}; raise "
            "spec.staging.sizeLimit, or the memory limit of the stage container",
            file=file,
        )
    return fail(
        Reason.ACCESS_DENIED,
        Phase.STAGE,
        f"{file} cannot be written to the tmpfs: {error.strerror}",
        file=file,
    )
