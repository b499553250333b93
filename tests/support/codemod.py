"""A codemod of a few lines, so that the tests of the ground do not depend on the real one.

A script says in its comments what is to become of it: ``# stub: convert``, ``todo``, ``refuse``, ``crash``, ``die``,
``wait``. ``# batch: N`` sets a value of its config.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsmigrate.codemod.model import Change, FileResult, Idea, Kind, Options, Status
from dsmigrate.files.diff import unified
from dsmigrate.files.text import decode, encode

IDEAS = (
    Idea(
        code="MG101",
        title="the wrap becomes deepspeed.initialize",
        summary="The DDP wrap is replaced.",
        why="The engine stands in for the wrapped model.",
        source="a fact",
        kind=Kind.CONVERTED,
        before="model = DDP(model)\n",
        after="model, *_ = deepspeed.initialize(model=model)\n",
    ),
    Idea("MG901", "two models are trained", "Refused.", "One engine trains one model.", "a fact", Kind.REFUSED, "x\n"),
)


def ideas() -> tuple[Idea, ...]:
    return IDEAS


def with_example(idea: Idea) -> Idea:
    return idea


@dataclass(frozen=True)
class Entry:
    path: str
    options: Options


@dataclass(frozen=True)
class Conversion:
    entry: str
    results: dict[str, FileResult]
    compat: None = None
    looked_at: tuple[str, ...] = ()
    runs: frozenset[tuple[str, int]] = frozenset()
    changes: frozenset[tuple[str, int]] = frozenset()
    alters: frozenset[tuple[str, int]] = frozenset()
    directories: frozenset[str] = frozenset()
    makers: frozenset[tuple[str, int]] = frozenset()


def convert_together(
    read: Callable[[str], bytes | None], entries: Sequence[Entry], *_: object, shown: Callable[[str], str], **__: object
) -> list[Conversion]:
    found = []
    for entry in entries:
        result = _migrated(read(entry.path) or b"", shown(entry.path), entry.options)
        found.append(Conversion(entry.path, {entry.path: result}, looked_at=(entry.path,)))
    return found


def _migrated(source: bytes, path: str, options: Options) -> FileResult:
    found = decode(source)
    asked = re.search(r"# stub: (\w+)", found.text)
    line = found.text.count("\n", 0, asked.start()) + 1 if asked else 1
    match asked[1] if asked else "":
        case "convert":
            return _converted(source, path, options, line=line, status=Status.CONVERTED)
        case "todo":
            return _converted(source, path, options, line=line, status=Status.CONVERTED_WITH_TODOS)
        case "refuse":
            change = Change("MG901", Kind.REFUSED, line, line, "two models are trained", "one engine trains one model")
            return FileResult(path, Status.REFUSED, (change,))
        case "crash":
            raise RuntimeError("planted")
        case "wait":
            with open(os.environ["STUB_REACHED"], "w"):  # noqa: PTH123 - a named pipe, which somebody reads from
                pass
            threading.Event().wait()
            return FileResult(path, Status.UNCHANGED)
        case "die":
            os._exit(3)
        case _:
            return FileResult(path, Status.UNCHANGED)


def _converted(source: bytes, path: str, options: Options, *, line: int, status: Status) -> FileResult:
    text = decode(source).text
    new = re.sub(r"# stub: \w+", f"# done {options.config_name} {options.zero_stage}", text)
    batch = re.search(r"# batch: (\d+)", text)
    changes = [
        Change("MG101", Kind.CONVERTED, line, line, "the wrap becomes deepspeed.initialize", "it is the engine"),
        Change("MG301", Kind.KEPT, line, line, "the barrier stays", ""),
    ]
    if status is Status.CONVERTED_WITH_TODOS:
        changes.append(Change("MG501", Kind.TODO, line, line, "read this again", "it could not be proven"))
    return FileResult(
        path,
        status,
        tuple(changes),
        diff=unified(text, new, path),
        new_source=encode(new, decode(source)),
        config={"train_micro_batch_size_per_gpu": int(batch[1]) if batch else 8, "zero_optimization": {"stage": 2}},
        launch=(f"torchrun --nproc_per_node=2 {path}", f"deepspeed {path}"),
        notes=(Change("MG801", Kind.KEPT, line, line, "buffers are not broadcast", "DDP does so at every forward"),),
    )
