"""Migrate every script of a folder and print what became of each, and the totals.

    python -m tests.benchmarks.corpus_table FOLDER [--json] [--jobs N] [--only TEXT]

Columns: status; crash (an exception, a bug); compiles; idem (a second run changes nothing); new undefined names;
scope (one-file: the wrap and a backward stand in this file; module: it starts no training by itself); leftover DDP
idioms in the output; gone lines that no change of the report covers; the refusal or error.
The share at the end is over the scripts that are not refused and need no second file.
Exits with 1 when a script crashed, or an output does not compile, changes again,
has a new undefined name, or lacks a line that the report does not speak of.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from pyflakes.checker import Checker
from pyflakes.messages import UndefinedLocal, UndefinedName

from dsmigrate.codemod.model import FileResult, Kind, Options, Status
from tests.benchmarks.leftovers import has_backward, has_wrap, leftovers
from tests.support.migrating import migrate_source, uncovered

SECONDS_PER_SCRIPT = 120
DONE = (Status.CONVERTED.value, Status.CONVERTED_WITH_TODOS.value)


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one script; ``None`` where the question does not arise."""

    script: str
    status: str
    seconds: float
    crash: str = ""
    compiles: bool | None = None
    idempotent: bool | None = None
    undefined: tuple[str, ...] = ()
    scope: str = ""
    leftover: tuple[str, ...] = ()
    uncovered: tuple[int, ...] = ()
    todos: int = 0
    reason: str = ""

    @property
    def sound(self) -> bool:
        """No crash, and an output that compiles, is stable, adds no undefined name and is covered by the report."""
        stable = self.compiles is not False and self.idempotent is not False
        return stable and not (self.crash or self.undefined or self.uncovered)

    @property
    def counts(self) -> bool:
        """Whether the script belongs to those that a single-file migration should finish."""
        return self.scope == "one-file" and self.status != Status.REFUSED.value

    @property
    def finished(self) -> bool:
        """Converted, with or without todos, and nothing of DDP left."""
        return self.status in DONE and not self.leftover and self.sound


def examine(script: Path, folder: Path) -> Row:
    """Migrate one script twice and look at the outcome."""
    warnings.simplefilter("ignore")
    name = script.relative_to(folder).as_posix()
    source = script.read_bytes()
    start = time.perf_counter()
    try:
        with _Limit(SECONDS_PER_SCRIPT):
            result = migrate_source(source, path=name, options=Options())
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        return Row(name, "crash", _since(start), crash=_last_frame(error), scope=_scope(source))
    row = Row(
        name,
        result.status.value,
        _since(start),
        scope="module" if any(change.code == "MG209" for change in result.changes) else _scope(source),
        todos=sum(change.kind is Kind.TODO for change in result.changes),
        reason=_reason(result),
        uncovered=tuple(uncovered(result, source)),
    )
    return row if result.new_source is None else _examine_output(row, source, result.new_source, name)


def _examine_output(row: Row, source: bytes, output: bytes, name: str) -> Row:
    facts = asdict(row)
    try:
        compile(output, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return Row(**{**facts, "compiles": False, "crash": f"output: {error}"})
    try:
        with _Limit(SECONDS_PER_SCRIPT):
            again = migrate_source(output, path=name, options=Options())
    except Exception as error:  # noqa: BLE001
        return Row(**{**facts, "compiles": True, "idempotent": False, "crash": "second run: " + _last_frame(error)})
    text = output.decode(errors="replace")
    return Row(
        **{
            **facts,
            "compiles": True,
            "idempotent": again.new_source is None and not again.diff and again.status is Status.UNCHANGED,
            "undefined": tuple(sorted(_undefined(output) - _undefined(source))),
            "leftover": leftovers(text),
        }
    )


class _Limit:
    """Raise TimeoutError in the block after some seconds, where the platform has SIGALRM."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._ring)
        signal.alarm(self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)

    def _ring(self, _signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {self.seconds} s")


def _undefined(source: bytes) -> set[str]:
    try:
        checker = Checker(ast.parse(source))
    except (SyntaxError, ValueError):
        return set()
    kinds = (UndefinedName, UndefinedLocal)
    return {str(message.message_args[0]) for message in checker.messages if isinstance(message, kinds)}


def _scope(source: bytes) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return "not Python"
    if has_wrap(tree) and has_backward(tree):
        return "one-file"
    return "wrap only" if has_wrap(tree) else "no wrap"


def _reason(result: FileResult) -> str:
    if result.status not in {Status.REFUSED, Status.ERROR}:
        return ""
    said = [change for change in result.changes if change.kind is Kind.REFUSED] or list(result.changes)
    return "; ".join(f"{change.code}:{change.line} {change.message}" for change in said[:3])


def _last_frame(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__}: {str(error)[:120]} ({where})"


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 3)


def show(rows: list[Row]) -> None:
    """Print one line per script, then the totals."""
    for row in rows:
        marks = [
            f"{row.status:22}",
            f"{row.scope:9}",
            "-" if row.compiles is None else "compiles" if row.compiles else "BROKEN",
            "-" if row.idempotent is None else "idem" if row.idempotent else "NOT-IDEM",
            f"{row.todos} todo",
            f"{row.seconds:.2f}s",
        ]
        print(f"{row.script}\n    " + "  ".join(marks))
        for label, text in (
            ("crash", row.crash),
            ("undefined", ", ".join(row.undefined)),
            ("leftover", ", ".join(row.leftover)),
            ("not in the report", ", ".join(map(str, row.uncovered))),
            ("because", row.reason),
        ):
            if text:
                print(f"    {label}: {text}")
    print("\n" + "\n".join(f"{name:58} {value}" for name, value in totals(rows).items()))


def totals(rows: list[Row]) -> dict[str, str | int]:
    """Return the figures under the table, by name."""
    outputs = [row for row in rows if row.compiles is not None]
    counted = [row for row in rows if row.counts]
    finished = [row for row in counted if row.finished]
    share = f"{len(finished)}/{len(counted)} = {100 * len(finished) / max(1, len(counted)):.1f} %"
    by_status = {f"status {name}": sum(row.status == name for row in rows) for name in sorted({r.status for r in rows})}
    return {
        "scripts": len(rows),
        **by_status,
        "crashes": sum(bool(row.crash) for row in rows),
        "outputs": len(outputs),
        "outputs that do not compile": sum(not row.compiles for row in outputs),
        "outputs that a second run changes": sum(row.idempotent is False for row in outputs),
        "outputs with new undefined names": sum(bool(row.undefined) for row in outputs),
        "outputs with leftover DDP idioms": sum(bool(row.leftover) for row in outputs),
        "outputs with a gone line that the report leaves out": sum(bool(row.uncovered) for row in outputs),
        **_refusals(rows),
        "finished, of those not refused and in need of one file": share,
    }


def _refusals(rows: list[Row]) -> dict[str, str | int]:
    codes = Counter(row.reason[:5] for row in rows if row.status == Status.REFUSED.value)
    return {f"refused with {code}": count for code, count in sorted(codes.items())}


def main(argv: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="print rows and totals as JSON")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="only scripts whose path holds this text")
    args = parser.parse_args(argv)
    scripts = sorted(path for path in args.folder.rglob("*.py") if args.only in path.as_posix())
    if not scripts:
        parser.error(f"no *.py under {args.folder}")
    if args.jobs == 1:
        rows = [examine(script, args.folder) for script in scripts]
    else:
        with ProcessPoolExecutor(args.jobs) as pool:
            rows = list(pool.map(examine, scripts, [args.folder] * len(scripts)))
    if args.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "totals": totals(rows)}, indent=2))
    else:
        show(rows)
    return 0 if all(row.sound for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
