"""What has to be set before PyTorch is imported, and what can be set right after the model is loaded."""

from __future__ import annotations

import gc
import os

from cosyvoice_worker.engine.limits import threads

# Nothing is ever fetched at run time: a pod without a network starts as any other.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def prepare() -> None:
    """Set threads and offline mode for the libraries that read them when they are loaded.

    The collector stays off until `settle`: importing PyTorch makes a million objects and not one cycle worth finding.
    """
    gc.disable()
    os.environ.update(OFFLINE)
    os.environ["OMP_NUM_THREADS"] = str(threads())
    # Waiting threads sleep instead of spinning: on a busy node that is 3 to 40 times faster.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def settle() -> None:
    """What is loaded by now stays: the collector need not walk over it again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()
