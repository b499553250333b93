"""What becomes of one event or place: converted, kept, different, left to the person, or refused."""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsmigrate.codemod.analysis.conditions import TRUE, Condition
from dsmigrate.codemod.analysis.values import Value
from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.program.edits import Edit, Import
from dsmigrate.codemod.program.module import Module


class Need(enum.Enum):
    """What a decision asks of the engine that another one may switch off."""

    WHOLE_GRADIENTS = "p.grad is averaged over the ranks between backward and step"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a key of the config is: a constant, or what the script works out. ``static`` stands in the file then."""

    value: Value | None
    static: Any
    code: str = ""
    """The expression that gives it when the script runs; "" for a constant."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """One decision of an idiom, with everything that follows from it.

    ``stage``: the highest ZeRO stage at which it is right, in the runs in which ``when`` holds; where the person asks for a
    higher one, ``otherwise`` is what is said instead. ``needs`` is what it asks of the engine; where another decision needs
    what it ``excludes``, ``otherwise`` is said instead too, and ``beside`` where other scripts run the code that it changes.
    ``least``: the lowest stage at which there is something to say. ``config`` maps dotted keys to settings. ``parts`` are
    the names that the script needs of ``ds_compat``. ``differs``: the script behaves differently there, which the report says first.
    """

    code: str
    kind: Kind
    module: Module
    node: ast.AST
    message: str
    reason: str = ""
    edits: tuple[Edit, ...] = ()
    imports: tuple[Import, ...] = ()
    config: Mapping[str, Setting] = field(default_factory=dict)
    stage: int = 3
    least: int = 0
    otherwise: Decision | None = None
    beside: Decision | None = None
    parts: frozenset[str] = frozenset()
    differs: bool = False
    suits_all: bool = False
    """Whether its edits are right too where another model than the engine comes."""
    when: Condition = TRUE
    needs: frozenset[Need] = frozenset()
    excludes: frozenset[Need] = frozenset()
    lines: tuple[int, int] | None = None
    """The lines that it speaks of, where they are not those of the node."""
