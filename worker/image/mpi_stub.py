"""Stand in for Open MPI: `python3 mpi_stub.py LIBRARY-FOLDER`, as root, in a build with gcc and binutils.

Debian's torch is linked against Open MPI for a way of distributing that a server of one process never takes, and
Open MPI brings 30 MB of transports with it. What remains is a library of the same name in which everything that is
asked of it is defined, and every function of it ends the process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAME = "libmpi.so.40"


def main() -> None:
    """Replace the library, if there is anything that uses it."""
    folder = Path(sys.argv[1])
    real = (folder / NAME).resolve()
    places = [path for where in (folder, folder.parent) for path in where.glob("lib*.so*") if not path.is_symlink()]
    wanted = {symbol for path in places if _uses_mpi(path) for symbol, *_ in _symbols("--undefined-only", path)}
    lines = ["#include <stdio.h>", "#include <stdlib.h>"]
    for symbol, kind, size in _symbols("--defined-only", real):
        if symbol in wanted and "mpi" in symbol.lower():
            lines.append(_definition(symbol, kind, size))
    if not any(line.startswith("int MPI_Init") for line in lines):
        sys.exit(f"mpi_stub: nothing in {folder} asks {NAME} for MPI_Init; does torch still use Open MPI?")
    options = ["-shared", "-fPIC", "-O2", "-s", f"-Wl,-soname,{NAME}", "-x", "c", "-", "-o", str(real)]
    subprocess.run(["gcc", *options], input="\n".join(lines) + "\n", text=True, check=True)


def _uses_mpi(library: Path) -> bool:
    shown = subprocess.run(["readelf", "--dynamic", library], capture_output=True, text=True, check=False)
    return f"Shared library: [{NAME}]" in shown.stdout


def _symbols(which: str, library: Path) -> list[tuple[str, str, int]]:
    """Name, kind (T for functions) and size in bytes, without the versions that names may carry."""
    command = ["nm", "--dynamic", "--format=posix", which, str(library)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [(row[0].split("@")[0], row[1], int(row[3], 16) if len(row) > 3 else 0) for row in rows]


def _definition(symbol: str, kind: str, size: int) -> str:
    if kind in "TWi":
        message = f"{symbol}: this image has no MPI\\n"
        return f'int {symbol}(void) {{ fputs("{message}", stderr); abort(); }}'
    return f"char {symbol}[{max(size, 1)}] __attribute__((aligned(64)));"


if __name__ == "__main__":
    main()
