"""Small scripts that are run abstractly, and what tests read of the runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent

from dsmigrate.codemod.analysis.analysis import Analysis, analysed
from dsmigrate.codemod.analysis.conditions import TRUE
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.values import UNBOUND, Obj, show
from dsmigrate.codemod.program.project import Project

TORCH = """
import os, sys, torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
"""


def run(script: str, **files: str) -> Analysis:
    """The run of a script, with torch imported; ``files``: modules beside it (``__`` in a name stands for a folder)."""
    texts = {"train.py": TORCH + dedent(script)}
    texts |= {f"{name.replace('__', '/')}.py": dedent(text) for name, text in files.items()}
    return analysed(Project(lambda path: texts[path].encode() if path in texts else None, "train.py"))


def values(script: str, **files: str) -> dict[str, str]:
    """What the names of a script hold at its end."""
    analysis = run(script, **files)
    top = analysis.run.modules["train.py"]
    before = {"os", "sys", "torch", "nn", "dist", "DDP", "__name__", "__file__"}
    return {
        name: show(analysis.run.settle(value))
        for name, value in top.own.items()
        if isinstance(name, str) and name not in before and value is not UNBOUND and not _is_definition(value)
    }


def _is_definition(value: object) -> bool:
    return isinstance(value, Obj) and isinstance(value.node, ast.FunctionDef | ast.ClassDef)


def saved(script: str, **files: str) -> list[str]:
    """What ``torch.save`` is given, in order, each with the condition under which that happens."""
    found = []
    for event in run(script, **files).of(Happening.SAVE):
        said = show(event["content"])
        found.append(said if event.condition is TRUE else f"{said} if {event.condition}")
    return found


def tree(script: str, *kinds: Happening, **files: str) -> str:
    """The tree of a run's events, or of some kinds of them: a line each, with the lines of the script they stand in."""
    lines = "\n".join(_lines(run(script, **files).root, set(kinds), 0))
    return f"\n{lines}\n" if lines else ""


def _lines(block: Block, kinds: set[Happening], depth: int) -> Iterator[str]:
    for item in block.items:
        if isinstance(item, Event):
            if not kinds or item.kind in kinds:
                yield "  " * depth + item.kind.value
            continue
        inner = list(_lines(item, kinds, depth + 1))
        if inner:
            yield "  " * depth + _title(item)
            yield from inner


def _title(block: Block) -> str:
    match block.kind:
        case BlockKind.BRANCH:
            return f"if {block.test}"
        case BlockKind.CALL if isinstance(block.label, Obj):
            return f"{block.label.data['name']}()"
        case BlockKind.LOOP | BlockKind.WITH if block.label is not None:
            return f"{block.kind.value} {show(block.label).partition('@')[0]}"
    return block.kind.value
