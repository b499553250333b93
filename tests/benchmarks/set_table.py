"""Migrate real scripts together with the modules they train with, and print what became of each.

    python -m tests.benchmarks.set_table FOLDER [--list FILE] [--only TEXT] [--json FILE]

``FOLDER`` holds one folder per project (``owner+name``), with the files laid out as in the project. ``--list`` names
the scripts, one JSON object with ``repo`` and ``path`` per line, and each is converted as the command converts it, with
the other scripts of its project around it; a listed module that starts nothing with a script that imports it; without
a list every script with a ``__main__`` of which something is said is taken. Columns: status, todos, seconds, the other
files that change; below, why a script is refused, DDP idioms that are left in statements which the entry script runs,
those that the report keeps with a reason, and what is wrong with a result.
Exits with 1 when a script crashed, or an output does not compile, changes again, has a new undefined name, or lacks a
line that the report does not speak of.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pyflakes.checker import Checker
from pyflakes.messages import UndefinedLocal, UndefinedName

from dsmigrate.codemod.analysis.conditions import Condition
from dsmigrate.codemod.analysis.machine import Machine
from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import FileResult, Kind, Options, Status
from dsmigrate.files.paths import resolved
from dsmigrate.migration.importers import users
from dsmigrate.migration.job import Job, run
from dsmigrate.migration.sets import reconcile
from tests.benchmarks.leftovers import leftovers
from tests.support.migrating import uncovered

DONE = (Status.CONVERTED.value, Status.CONVERTED_WITH_TODOS.value)


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
    kept: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)


def reader(root: Path, texts: dict[str, bytes]) -> Callable[[str], bytes | None]:
    """Read below ``root``, with some files replaced."""

    def read(path: str) -> bytes | None:
        if path in texts:
            return texts[path]
        file = root / path
        return file.read_bytes() if file.is_file() else None

    return read


def examine(script: Path, root: Path) -> Row:
    """Migrate one script twice and look at the outcome."""
    warnings.simplefilter("ignore")
    entry = script.relative_to(root).as_posix()
    name = f"{root.name}/{entry}"
    start = time.perf_counter()
    try:
        results = _among_others(script, root)
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        return Row(name, "crash", time.perf_counter() - start, faults=[f"{type(error).__name__}: {error}"])
    own = results[entry]
    row = Row(name, own.status.value, time.perf_counter() - start)
    outputs = {path: found.new_source for path, found in results.items() if found.new_source is not None}
    row.changed = tuple(path for path in outputs if path != entry)
    row.todos = sum(change.kind is Kind.TODO for found in results.values() for change in found.changes)
    if own.status in {Status.REFUSED, Status.ERROR}:
        change = own.changes[0]
        row.reason = f"{change.code}:{change.line} {change.message}"
    for path, output in outputs.items():
        before = reader(root, {})(path) or b""
        row.faults.extend(f"{path}: {fault}" for fault in _faults(before, output, results[path]))
    with _noting_lines() as run_lines:
        if outputs and not _is_still(convert(reader(root, outputs), entry, Options()).results, entry):
            row.faults.append("a second run changes it")
    left = _left(run_lines, outputs)
    row.kept = tuple(text for text in left if _is_kept(text, results))
    row.leftover = tuple(text for text in left if text not in row.kept)
    return row


def _among_others(script: Path, root: Path) -> dict[str, FileResult]:
    """What the command makes of a script in its project."""
    first, *_ = reconcile([run(Job(script, script.parent, Options(), project=root))])
    base = resolved(root)
    return {resolved(one.job.path).relative_to(base).as_posix(): one.result for one in (first, *first.modules)}


@contextlib.contextmanager
def _noting_lines() -> Iterator[set[tuple[str, int]]]:
    """The lines of all statements that are run abstractly, without those of the statements in them."""
    found: set[tuple[str, int]] = set()
    statement = Machine.statement

    def noted(machine: Machine, node: ast.stmt) -> Condition:
        inner = getattr(node, "body", None)
        last = inner[0].lineno - 1 if inner else node.end_lineno or node.lineno
        found.update((machine.frame.module.path, line) for line in range(node.lineno, max(last, node.lineno) + 1))
        return statement(machine, node)

    Machine.statement = noted  # type: ignore[assignment, method-assign]
    try:
        yield found
    finally:
        Machine.statement = statement  # type: ignore[method-assign]


# Idioms that stay for a reason, by the codes that give it.
_REASONS = {
    "scaler.unscale_": {"MG426"},
    "clip_grad_norm_": {"MG422", "MG423"},
    "amp.master_params": {"MG423"},
    "DDP wrap": {"MG105", "MG120"},
}


def _is_kept(text: str, results: dict[str, FileResult]) -> bool:
    """Whether the report says of an idiom's file that such an idiom stays, and why."""
    path, _, idiom = text.split(":", 2)
    codes = _REASONS.get(idiom.strip(), set())
    return any(change.kind is not Kind.TODO and change.code in codes for change in results[path].changes)


def _left(run_lines: set[tuple[str, int]], outputs: dict[str, bytes]) -> list[str]:
    """The idioms left in the statements that the entry script runs."""
    return [
        f"{path}:{text}"
        for path, output in outputs.items()
        if Path(path).name != "ds_compat.py"
        for text in leftovers(output.decode(errors="replace"))
        if (path, int(text.partition(":")[0])) in run_lines
    ]


def _is_still(results: Mapping[str, FileResult], entry: str) -> bool:
    return results[entry].status is Status.UNCHANGED and not any(found.diff for found in results.values())


def _faults(before: bytes, after: bytes, result: FileResult) -> list[str]:
    try:
        compile(after, "<converted>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return [f"does not compile: {error}"]
    found = [f"new undefined name {name}" for name in sorted(_undefined(after) - _undefined(before))]
    gone = uncovered(result, before)
    return found + ([f"lines {gone} are not in the report"] if gone else [])


def _undefined(source: bytes) -> set[str]:
    kinds = (UndefinedName, UndefinedLocal)
    return {str(m.message_args[0]) for m in Checker(ast.parse(source)).messages if isinstance(m, kinds)}


def _examine_listed(pair: tuple[Path, Path]) -> Row:
    """What becomes of a script; of a module that starts nothing, what becomes of it with a script that imports it."""
    script, root = pair
    row = examine(script, root)
    if row.status != Status.UNCHANGED.value:
        return row
    name = script.relative_to(root).as_posix()
    for entry in sorted(users(root, [resolved(script)]), key=lambda path: (len(path.parts), path)):
        through = examine(entry, resolved(root))
        if name in through.changed:
            return replace(through, script=f"{row.script} (with {through.script})")
    return row


def _rows(folder: Path, listed: Path | None, only: str, jobs: int) -> Iterator[Row]:
    if listed is not None:
        wanted = [json.loads(line) for line in listed.read_text().splitlines()]
        places = [(folder / item["repo"].replace("/", "+"), item["path"]) for item in wanted]
        pairs = [(root / path, root) for root, path in places if only in f"{root.name}/{path}"]
        with ProcessPoolExecutor(jobs) as pool:
            yield from pool.map(_examine_listed, pairs)
        return
    for root in sorted(path for path in folder.iterdir() if path.is_dir()):
        for script in sorted(root.rglob("*.py")):
            if only in script.as_posix() and b"__main__" in script.read_bytes():
                row = examine(script, root)
                if row.status != Status.UNCHANGED.value:
                    yield row


def main(argv: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path, help="JSON lines that name the scripts by repo and path")
    parser.add_argument("--only", default="", help="only scripts whose path holds this text")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    rows = []
    for row in _rows(args.folder, args.list, args.only, args.jobs):
        rows.append(row)
        _show(row)
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    _totals(rows)
    return 1 if any(row.faults for row in rows) else 0


def _show(row: Row) -> None:
    changed = ", ".join(row.changed) or "-"
    print(f"{row.script}\n    {row.status:22}  {row.todos} todo  {row.seconds:.2f}s  with {changed}", flush=True)
    for label, texts in (
        ("because", (row.reason,)),
        ("leftover", row.leftover),
        ("kept", row.kept),
        ("FAULT", tuple(row.faults)),
    ):
        for text in filter(None, texts):
            print(f"    {label}: {text}", flush=True)


def _totals(rows: list[Row]) -> None:
    finished = [row for row in rows if row.status in DONE and not row.leftover and not row.faults]
    willing = [row for row in rows if row.status != Status.REFUSED.value]
    print(f"\nscripts: {len(rows)}  {dict(Counter(row.status for row in rows))}")
    print(f"refused with: {dict(Counter(row.reason[:5] for row in rows if row.reason))}")
    done = [row for row in rows if row.status in DONE]
    todos = sum(row.todos for row in done)
    print(f"todos: {todos} in {len(done)} converted scripts, {todos / max(1, len(done)):.2f} each")
    print(f"with leftover idioms: {sum(bool(r.leftover) for r in rows)}  faults: {sum(bool(r.faults) for r in rows)}")
    for label, some in (("of all", rows), ("of those not refused", willing)):
        print(f"finished {label}: {len(finished)}/{len(some)} = {100 * len(finished) / max(1, len(some)):.1f} %")


if __name__ == "__main__":
    sys.exit(main())
