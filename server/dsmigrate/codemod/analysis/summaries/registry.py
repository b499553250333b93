"""How summaries are written down and found: by qualified name, and by the role of an object."""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from dsmigrate.codemod.analysis.machine import Given, Machine
from dsmigrate.codemod.analysis.values import UNBOUND, Obj, Value


class Role(enum.Enum):
    """What an object of a library is in a training."""

    MODEL = "model"
    WRAPPER = "wrapper"
    REPLICAS = "replicas"
    """torch.nn.DataParallel."""
    SHARDED = "sharded"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    LOADER = "loader"
    SAMPLER = "sampler"
    REGION = "region"
    PARSER = "parser"
    AVERAGED = "averaged"
    """A copy of a model that follows its weights (torch.optim.swa_utils.AveragedModel, timm.utils.ModelEma)."""
    ENGINE = "engine"
    FRAMEWORK = "framework"
    """What owns the loop, backward and step: accelerate's Accelerator, Lightning's Trainer."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of something of a library: its name, what it is given, where."""

    run: Machine
    name: str
    given: Given
    node: ast.AST

    def get(self, index: int | None, name: str, default: Value = UNBOUND) -> Value:
        """An argument by its position or its name."""
        return self.given.get(index, name, default)


Handler: TypeAlias = Callable[[Call], Value]
MethodHandler: TypeAlias = Callable[[Call, Value], Value]
Maker: TypeAlias = Callable[[Call, Obj], None]
AttributeHandler: TypeAlias = Callable[[Machine, Obj, ast.AST], Value]

CLASSES: dict[str, Role] = {}
FAMILIES: list[tuple[str, Role]] = []
FUNCTIONS: dict[str, Handler] = {}
PARALLEL: dict[str, str] = {}
"""Other kinds of distributed training, by the beginnings of their functions' names."""
METHODS: dict[tuple[Role, str], MethodHandler] = {}
ANY_METHODS: dict[str, MethodHandler] = {}
"""Methods by names of torch's modules, of things that are not known to be one."""
MAKERS: dict[Role, Maker] = {}
"""What making an object of a role brings about, and what it keeps."""
ATTRIBUTES: dict[tuple[Role, str], AttributeHandler] = {}
TESTS: dict[str, Callable[[Value, Value], bool | None]] = {}
"""Whether functions that ask about their first argument say yes of one value, None where that is not known."""
ALIASES: dict[str, str] = {}
_DEFINED_IN = re.compile(
    r"(?:(torch\.nn)\.modules\.\w+|(torch\.utils\.data)\.(?:sampler|dataset|dataloader)"
    r"|(torch\.optim)\.(?!lr_scheduler|swa_utils)[a-z_]+)\.(?=[A-Z]\w*$)"
)
"""The modules of torch in which it defines what its packages offer."""
CHOSEN = "Chosen"
"""Stands for a class that is chosen by its name when the script runs: ``getattr(torch.optim, args.opt)``."""


def classes(role: Role, names: str | Iterable[str]) -> None:
    """Say of which role the objects of some classes are; a name that ends with ``.`` is a family of them."""
    for name in names.split() if isinstance(names, str) else names:
        if name.endswith("."):
            FAMILIES.append((name, role))
        else:
            CLASSES[name] = role


def aliases(**pairs: str) -> None:
    """Say that one path means another; ``__`` stands for the dots."""
    ALIASES.update({name.replace("__", "."): other for name, other in pairs.items()})


def function(*names: str) -> Callable[[Handler], Handler]:
    """Say what some functions give and bring about."""

    def note(handler: Handler) -> Handler:
        for name in names:
            FUNCTIONS[name] = handler
        return handler

    return note


def method(roles: Role | Iterable[Role], *names: str) -> Callable[[MethodHandler], MethodHandler]:
    """Say what a method of objects of a role gives and brings about."""
    all_roles = [roles] if isinstance(roles, Role) else list(roles)

    def note(handler: MethodHandler) -> MethodHandler:
        for role in all_roles:
            for name in names:
                METHODS[role, name] = handler
        return handler

    return note


def any_method(*names: str) -> Callable[[MethodHandler], MethodHandler]:
    """Say what a method of this name means of something that is not read."""

    def note(handler: MethodHandler) -> MethodHandler:
        for name in names:
            ANY_METHODS[name] = handler
        return handler

    return note


@cache
def canonical(name: str) -> str:
    """The one name of what several paths lead to."""
    return ALIASES.get(name) or ALIASES.get(short := _DEFINED_IN.sub(r"\1\2\3.", name), short)


def role_of_class(name: str) -> Role | None:
    """The role of the objects of a class, None for one that is not known."""
    name = canonical(name)
    found = CLASSES.get(name)
    if found is None:
        last = name.rpartition(".")[2]
        for family, role in FAMILIES:
            if name.startswith(family) and last[:1].isupper():
                return role
    return found
