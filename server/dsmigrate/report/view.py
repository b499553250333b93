"""What a report is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dsmigrate.codemod.model import NEWEST_DEEPSPEED, FileResult, Kind, Status


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a report.

    ``config_path`` is where the config of a converted script goes, and ``config_in_the_way`` says that a different
    config lies there and may not be replaced unasked. ``is_launcher``: the file starts a converted script;
    ``is_new``: there is no such file yet.
    """

    result: FileResult
    config_path: str | None = None
    config_in_the_way: bool = False
    is_launcher: bool = False
    is_new: bool = False
    of: str = ""
    release: str = NEWEST_DEEPSPEED


@dataclass(frozen=True, slots=True)
class Report:
    """Every file of a run in the order given, and the paths that were written.

    ``write_command`` is the command line that would write what is only shown, None where there is none. ``goes_over``:
    what was written trains only in the place of the originals, as modules that did not change are not among it.
    ``replaced`` says which configs of the project it would replace there.
    """

    entries: tuple[Entry, ...]
    written: tuple[str, ...] = ()
    write_command: str | None = None
    goes_over: bool = False
    replaced: tuple[str, ...] = ()
    verify_command: str | None = None
    """The command line that trains original and result beside each other."""

    @property
    def exit_code(self) -> int:
        """2 where a file could not be worked on, 1 where work is left for the person, else 0."""
        return exit_code([entry.result for entry in self.entries])

    def summary(self) -> dict[str, int]:
        """Count files by status and decisions by kind; every status and kind is present."""
        statuses = Counter(entry.result.status for entry in self.entries)
        kinds = Counter(change.kind for entry in self.entries for change in entry.result.changes)
        return {
            "files": len(self.entries),
            **{f"files_{status.value}": statuses[status] for status in Status},
            **{f"changes_{kind.value}": kinds[kind] for kind in Kind},
        }


def exit_code(results: Sequence[FileResult]) -> int:
    """Return the exit code of a run over these results; see ``Report.exit_code``."""
    if any(result.status is Status.ERROR for result in results):
        return 2
    open_work = {Status.CONVERTED_WITH_TODOS, Status.REFUSED}
    left = any(
        result.status in open_work or any(change.kind in {Kind.TODO, Kind.REFUSED} for change in result.changes)
        for result in results
    )
    return 1 if left else 0
