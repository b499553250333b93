"""What the walk has seen of each path of the config."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsmigrate.derivation.child.values import UNKNOWN, Arguments, Item, Values

LOGS = frozenset({"logger", "logging", "log_dist"})
MISSING: Any = object()
"""Stands for "no default was seen": None is a default."""


@dataclass
class Read:
    """One path: who reads it, with which default, and what is done with the value."""

    source: str
    default: Any = MISSING
    other_defaults: bool = False
    """Whether another reader has another default."""
    made_into: list[str] = field(default_factory=list)
    tested_as: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    """The values that are accepted, when all others raise."""
    ignore_case: bool = False


@dataclass
class Outcome:
    """One walk through a function: with which arguments, for which file, and what was returned."""

    arguments: Arguments
    source: str
    returned: Values = UNKNOWN


@dataclass
class Record:
    """Everything that the walk collects."""

    root: Path
    """The folder of the release, to which sources are relative."""
    reads: dict[str, Read] = field(default_factory=dict)
    models: dict[str, type] = field(default_factory=dict)
    """Section path to the pydantic model that judges it."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Section path to the section that is read instead of it when both are there."""
    rejected: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Path to the table that rejects it and the file of the table."""
    walked: dict[Any, list[Outcome]] = field(default_factory=dict)
    """Function to the arguments with which it was walked and what it returned, so that none is walked twice."""

    handed_over: dict[tuple[str, str], None] = field(default_factory=dict)
    """Functions of modules that are not run and get a part of the config, each with the path of the part."""
    built: set[type] = field(default_factory=set)
    """Classes that are walked by themselves, not where they are constructed."""
    popped: set[str] = field(default_factory=set)
    """Paths that are taken out of their section when they are read."""

    def read(self, path: str, source: str, default: object = MISSING) -> None:
        """Note that ``path`` is asked for; the first default that is seen stays."""
        if not path:
            return
        entry = self.reads.setdefault(path, Read(source))
        if entry.default is MISSING:
            entry.default = default
        elif default is not MISSING and entry.default != default:
            entry.other_defaults = True

    def made_into(self, path: str, kind: str) -> None:
        """Note that the value at ``path`` is converted to, or used as, a JSON type."""
        entry = self.reads.get(path)
        if entry is not None and kind not in entry.made_into:
            entry.made_into.append(kind)

    def tested_as(self, path: str, kinds: list[str]) -> None:
        """Note that code asks whether the value at ``path`` is of one of these JSON types."""
        entry = self.reads.get(path)
        if entry is not None:
            entry.tested_as += [kind for kind in kinds if kind not in entry.tested_as]

    def closed(self, item: Item, values: list[Any]) -> None:
        """Note that only these values of an item do not raise."""
        entry = self.reads.get(item.path)
        plain = [value for value in values if isinstance(value, str | int | float)]
        if entry is not None and plain and not entry.values:
            entry.values, entry.ignore_case = plain, item.folded

    def hand_over(self, function: str, given: list[Item]) -> None:
        """Note that parts of the config are given to a function that is not run; logs read nothing."""
        for item in given if LOGS.isdisjoint(function.split(".")) else ():
            if not item.made:
                self.handed_over[function, item.path] = None

    def in_order(self, paths: Iterable[str]) -> list[str]:
        """Return paths in the order in which they were first read."""
        position = {path: number for number, path in enumerate(self.reads)}
        return sorted(paths, key=lambda path: position.get(path, len(position)))
