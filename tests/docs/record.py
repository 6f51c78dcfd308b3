"""What one watch of the model has shown since it began."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dev.waiting import wait_for
from tests.docs.reader import Reader

Row = tuple[str, ...]


@dataclass
class Record:
    """A watch into `file`; what a page shows of it comes later in it than what the page has shown before."""

    watch: subprocess.Popen[bytes]
    file: Path
    place: int = 0

    @classmethod
    def begin(cls, reader: Reader) -> Record:
        """Watch the model from now on."""
        with tempfile.NamedTemporaryFile(dir=reader.folder, delete=False) as file:
            # The program behind the reader's `kubectl`, which would end the watch.
            words = [reader.environment["KUBECTL"], "get", "cvm", "narrator", "--watch"]
            watch = subprocess.Popen(words, env=reader.environment, stdout=file)
        return cls(watch, Path(file.name))

    def end(self) -> None:
        """End the watch."""
        self.watch.terminate()
        self.watch.wait(10)

    def shows(self, table: str) -> None:
        """Wait until the table's first row and after that its last have come. Raises WaitError."""
        wanted = rows(table)
        for row in (wanted[0], wanted[-1]):
            wait_for(f"{' '.join(row)} in the watch {self.file}", partial(self._has, row), timeout=120)

    def _has(self, row: Row) -> bool:
        here = rows(self.file.read_text())
        if row not in here[self.place :]:
            return False
        self.place = here.index(row, self.place) + 1
        return True


def rows(table: str) -> list[Row]:
    """Version, target and status of each line; what else is in it changes from second to second."""
    lines = [line.split() for line in table.splitlines()]
    return [(cells[1], cells[2], cells[4]) for cells in lines if len(cells) == 6 and cells[0] != "NAME"]
