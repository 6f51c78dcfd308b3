"""`make fuzz`: feeds readers with damaged and hostile variants until the time is over.

    python -m dev.fuzz [--seconds 180] [--seed N] [--memory-mib 4096] [reader ...]

Each reader runs in a process of its own, with bounded memory and five seconds for each variant. A fault ends the
reader's run, and its bytes are kept in the folder `fuzz-faults`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import FrameType

import torch

from dev.cluster import registry
from dev.demo import source
from dev.fuzz.mutation import variants
from dev.fuzz.readers import Reader, readers

VARIANT_SECONDS = 5.0
MIB = 1024 * 1024


def main() -> int:
    """Fuzz; 1 where a reader had a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180, help="CPU seconds for each reader (default %(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="default: a new one")
    parser.add_argument("--memory-mib", type=int, default=4096, help="beyond what is mapped (default %(default)s)")
    parser.add_argument("--faults", type=Path, default=Path("fuzz-faults"), help="folder (default %(default)s)")
    parser.add_argument("readers", nargs="*", help="default: all")
    args = parser.parse_args()
    model, _recording = source.make_tiny(registry.default_cache() / "tests")
    print(f"seed {args.seed}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        table = readers(model, Path(folder))
        for name in args.readers or table:
            process = multiprocessing.get_context("fork").Process(target=_run, args=(name, table[name], args))
            process.start()
            process.join()
            failed |= process.exitcode != 0
            if process.exitcode not in (0, 1):
                print(f"{name}: ended with {process.exitcode}")
    return int(failed)


def _run(name: str, reader: Reader, args: argparse.Namespace) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + args.memory_mib * MIB,) * 2)
    signal.signal(signal.SIGALRM, _too_slow)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    done = refused = 0
    begun = time.process_time()
    for content in variants(reader.seeds, args.seed):
        if (spent := time.process_time() - begun) >= args.seconds:
            break
        signal.setitimer(signal.ITIMER_REAL, VARIANT_SECONDS)
        try:
            reader.read(content)
        except reader.refusals:
            refused += 1
        except BaseException as fault:  # noqa: BLE001 - whatever it is, it is what is looked for
            args.faults.mkdir(exist_ok=True)
            kept = args.faults / name
            kept.write_bytes(content)
            print(f"{name}: {type(fault).__name__}: {fault} (variant {done}, kept in {kept})")
            sys.exit(1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        done += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name:22} {done:9} variants, {refused:9} refused, {spent:6.0f} CPU s, peak {peak} MiB", flush=True)


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {VARIANT_SECONDS:g} s for one variant")


if __name__ == "__main__":
    sys.exit(main())
