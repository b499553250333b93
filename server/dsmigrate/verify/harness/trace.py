"""The records of one process: one JSON object per line, one file per rank."""

from __future__ import annotations

import json
import math
import os
import time
import traceback
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """Return ``value`` as strict JSON has it: numbers that JSON lacks become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class Trace:
    """Writes events; the file is opened with the first one, when the rank is known."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._owner = 0
        self._file: Any = None
        self.rank = 0

    def write(self, event: str, **fields: Any) -> None:
        """Append one event and flush, so that a crash loses nothing."""
        if self._file is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._file = (self._folder / f"rank{self.rank}.jsonl").open("a", encoding="utf-8")
        self._file.write(json.dumps({"event": event, **plain(fields)}) + "\n")
        self._file.flush()

    def mark(self, name: str) -> None:
        """Leave a sign for the other ranks."""
        (self._folder / f"{name}.{self.rank}").touch()

    def marked(self, name: str, rank: int) -> bool:
        """Return whether another rank has left a sign."""
        return (self._folder / f"{name}.{rank}").exists()

    def wait(self, name: str, ranks: int, seconds: float) -> None:
        """Wait until all ranks have left a sign, or for so many seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not all(self.marked(name, rank) for rank in range(ranks)):
            time.sleep(0.01)

    def problem(self, where: str) -> None:
        """Record an error of the harness itself: the training goes on without that quantity."""
        self.write("harness", where=where, error=traceback.format_exc(limit=-3))
