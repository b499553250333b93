"""Migrate every script of a folder together with the modules it trains with, and print what became of each.

    python -m tests.benchmarks.set_table FOLDER [--only TEXT]

``FOLDER`` holds one folder per project, with the files laid out as in the project. Scripts that train alone are
left to ``corpus_table``. Columns: status, seconds, the other files that change; below, what is wrong with a result.
Exits with 1 when a script crashed, or an output does not compile, changes again, has a new undefined name, or lacks a
line that the report does not speak of.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyflakes.checker import Checker
from pyflakes.messages import UndefinedLocal, UndefinedName

from dsmigrate.codemod.across import SetResult, migrate_set
from dsmigrate.codemod.model import FileResult, Kind, Options, Status
from dsmigrate.files.diff import gone_lines
from tests.benchmarks.leftovers import leftovers


@dataclass(slots=True)
class Row:
    """What became of one script and its modules."""

    script: str
    status: str
    seconds: float
    changed: tuple[str, ...] = ()
    todos: int = 0
    reason: str = ""
    leftover: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)


def reader(root: Path, texts: dict[str, bytes]) -> Callable[[str], bytes | None]:
    """Read below ``root``, with some files replaced."""

    def read(path: str) -> bytes | None:
        if path in texts:
            return texts[path]
        file = root / path
        return file.read_bytes() if file.is_file() else None

    return read


def examine(script: Path, root: Path) -> Row | None:
    """Migrate one script twice and look at the outcome; None for a script that trains alone."""
    entry = script.relative_to(root).as_posix()
    name = f"{root.name}/{entry}"
    start = time.perf_counter()
    try:
        result = migrate_set(reader(root, {}), entry, shown=str, options=Options())
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        return Row(name, "crash", time.perf_counter() - start, faults=[f"{type(error).__name__}: {error}"])
    if result is None:
        return None
    row = Row(name, result.entry.status.value, time.perf_counter() - start)
    results = {entry: result.entry, **result.modules}
    outputs = {path: found.new_source for path, found in results.items() if found.new_source is not None}
    row.changed = tuple(path for path in outputs if path != entry)
    row.todos = sum(change.kind is Kind.TODO for found in results.values() for change in found.changes)
    if result.entry.status in {Status.REFUSED, Status.ERROR}:
        change = result.entry.changes[0]
        row.reason = f"{change.code}:{change.line} {change.message}"
    for path, output in outputs.items():
        before = reader(root, {})(path) or b""
        row.faults.extend(f"{path}: {fault}" for fault in _faults(before, output, results[path]))
        row.leftover += leftovers(output.decode(errors="replace"))
    if outputs:
        again = migrate_set(reader(root, outputs), entry, shown=str, options=Options())
        if again is not None and not _is_still(again):
            row.faults.append("a second run changes it")
    return row


def _is_still(result: SetResult) -> bool:
    return result.entry.status is Status.UNCHANGED and not any(found.diff for found in result.modules.values())


def _faults(before: bytes, after: bytes, result: FileResult) -> list[str]:
    try:
        compile(after, "<converted>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return [f"does not compile: {error}"]
    found = [f"new undefined name {name}" for name in sorted(_undefined(after) - _undefined(before))]
    covered = {line for change in result.changes for line in range(change.line, change.end_line + 1)}
    lines = before.split(b"\n")
    gone = [line for line in gone_lines(result.diff) if line not in covered and lines[line - 1].strip()]
    return found + ([f"lines {gone} are not in the report"] if gone else [])


def _undefined(source: bytes) -> set[str]:
    kinds = (UndefinedName, UndefinedLocal)
    return {str(m.message_args[0]) for m in Checker(ast.parse(source)).messages if isinstance(m, kinds)}


def main(argv: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="only scripts whose path holds this text")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows = []
    for root in sorted(path for path in args.folder.iterdir() if path.is_dir()):
        for script in sorted(root.rglob("*.py")):
            if args.only in script.as_posix() and b"__main__" in script.read_bytes():
                row = examine(script, root)
                if row is not None:
                    rows.append(row)
    for row in rows:
        changed = ", ".join(row.changed) or "-"
        print(f"{row.script}\n    {row.status:22}  {row.todos} todo  {row.seconds:.2f}s  with {changed}")
        for label, texts in (("because", (row.reason,)), ("leftover", row.leftover), ("FAULT", tuple(row.faults))):
            for text in filter(None, texts):
                print(f"    {label}: {text}")
    counts = Counter(row.status for row in rows)
    print(f"\nscripts with modules: {len(rows)}  {dict(counts)}")
    print(
        f"with leftover idioms: {sum(bool(r.leftover) for r in rows)}  with faults: {sum(bool(r.faults) for r in rows)}"
    )
    return 1 if any(row.faults for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
