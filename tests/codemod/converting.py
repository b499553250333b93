"""Conversions for tests: a script, or the files of a project, in; what became of it out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import Change, Kind, Options, Start, Status

HEAD = """\
import os
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
"""


@dataclass(frozen=True)
class Converted:
    """What a conversion gave; ``text`` is the entry's new source, ``texts`` those of all files that changed."""

    status: Status
    text: str
    texts: Mapping[str, str]
    config: dict[str, Any]
    changes: tuple[Change, ...]
    parts: frozenset[str]
    launch: tuple[str, ...] = ()
    start: Start | None = None
    placeholders: tuple[str, ...] = ()

    def lines(self, before: str) -> list[str]:
        """The lines of the entry that are new, without their indentation."""
        old = set(before.splitlines())
        return [line.strip() for line in self.text.splitlines() if line not in old]

    def codes(self, kind: Kind) -> set[str]:
        return {change.code for change in self.changes if change.kind is kind}

    def said(self, code: str, kind: Kind | None = None) -> Change:
        """The first change with a code, of a kind."""
        found = [change for change in self.changes if change.code == code and kind in {None, change.kind}]
        assert found, "\n".join(
            f"{change.code} {change.kind.value} {change.line} {change.message}" for change in self.changes
        )
        return found[0]

    @property
    def todos(self) -> list[tuple[str, int]]:
        return [(change.code, change.line) for change in self.changes if change.kind is Kind.TODO]


def _dedented(script: str) -> str:
    """A script without the indentation that it has in the test, behind the imports that it may begin with."""
    return HEAD + textwrap.dedent(script.removeprefix(HEAD)) if script.startswith(HEAD) else textwrap.dedent(script)


def converted(script: str, files: Mapping[str, str] | None = None, path: str = "train.py", **options: Any) -> Converted:
    """Convert a script, with other files of its project beside."""
    every = {path: _dedented(script), **{name: textwrap.dedent(text) for name, text in (files or {}).items()}}

    def read(name: str) -> bytes | None:
        return every[name].encode() if name in every else None

    found = convert(read, path, Options(**options))
    entry = found.results[path]
    texts = {
        name: result.new_source.decode() for name, result in found.results.items() if result.new_source is not None
    }
    changes = tuple(change for result in found.results.values() for change in result.changes)
    return Converted(
        entry.status,
        texts.get(path, every[path]),
        texts,
        entry.config or {},
        changes,
        found.compat.parts if found.compat else frozenset(),
        entry.launch,
        entry.start,
        entry.placeholders,
    )
