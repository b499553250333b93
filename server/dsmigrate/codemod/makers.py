"""Which calls make optimizers and schedulers, and which only look like it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.flow import Flow
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.role_names import (
    KNOWN_OPTIMIZER_CLASSES,
    OPTIMIZER_WORD,
    REDUNDANCY_NAMES,
    SCHEDULER_WORD,
)
from dsmigrate.codemod.tree import Class, Function, Node, descendants

if TYPE_CHECKING:
    from dsmigrate.codemod.roles import Roles


def _class_is_optimizer(cls: Class, roles: Roles) -> bool:
    return any(
        name.endswith("Optimizer")
        for base in cls.bases
        for name in roles.flow.imports.meanings(base, cls.scope) or {base}
    ) or any(base.rpartition(".")[2] in KNOWN_OPTIMIZER_CLASSES | {"Optimizer"} for base in cls.bases)


def is_inside_optimizer(roles: Roles, function: Function) -> bool:
    """Whether a function is a method of an optimizer class, or stands in one: how it steps is its own affair."""
    scope: Function | None = function
    while scope is not None:
        if scope.owner is not None and derives_from_optimizer(roles, scope.owner):
            return True
        scope = scope.parent
    return False


def derives_from_optimizer(roles: Roles, cls: Class) -> bool:
    """Whether a class of the tree is an optimizer, by itself or through its bases."""
    known: dict[str, bool] = roles.optimizer_classes
    if cls.key not in known:
        known[cls.key] = False
        own = _class_is_optimizer(cls, roles)
        known[cls.key] = own or any(derives_from_optimizer(roles, base) for base in roles.flow.bases(cls))
    return known[cls.key]


def is_optimizer_call(roles: Roles, call: cst.Call) -> bool:
    """Whether a call makes an optimizer: a torch or known class, a class of the file, or a factory named so."""
    imports = roles.flow.imports
    for name in imports.names(call.func):
        head, _, last = name.rpartition(".")
        if "lr_scheduler" in name:
            return False
        cls = _class_called(roles, call, name)
        if cls is not None:
            return _class_is_optimizer(cls, roles)
        if head in {"torch.optim", "torch.optim._multi_tensor", "torch.distributed.optim"} and last[:1].isupper():
            return True
        if last in KNOWN_OPTIMIZER_CLASSES:
            return True
        if last.endswith(("Optimizer", "Optim")) and last[:1].isupper() and _takes_parameters(call):
            return True
        lowered = last.lower()
        if (
            not last[:1].isupper()
            and OPTIMIZER_WORD.search(lowered)
            and not SCHEDULER_WORD.search(lowered)
            and re.match(
                r"^_*(?:create|build|get|make|configure|prepare|setup|init|construct|load)?_?\w*optim", lowered
            )
            and not lowered.startswith(("load_state", "save", "adjust", "update", "step", "optimize", "zero", "set_"))
            and not re.search(r"param|group|state|args|config|name|wd|dtype", lowered)
        ):
            return True
    func = call.func
    # A class of torch.optim chosen by name, through getattr or the module's dictionary.
    if isinstance(func, cst.Call) and dotted(func.func) == "getattr" and func.args:
        return roles.flow.imports.is_from_package(func.args[0].value, "torch.optim")
    if isinstance(func, cst.Subscript) and isinstance(func.value, cst.Attribute):
        return roles.flow.imports.is_from_package(func.value.value, "torch.optim")
    return False


def _class_called(roles: Roles, call: cst.Call, name: str) -> Class | None:
    tree = roles.flow.tree
    if len(tree.parts) == 1:
        return tree.classes.get(name)
    text = dotted(call.func)
    return None if text is None else roles.flow.class_named(text, tree.statement(call).function)


def _takes_parameters(call: cst.Call) -> bool:
    """Whether a class named like an optimizer is given parameters or a model (there are other optimizers in the world)."""
    return any(
        isinstance(sub, cst.Name) and re.search(r"param|model|net|group", sub.value, re.IGNORECASE)
        for arg in call.args
        for sub in descendants(arg.value)
    )


REDUNDANCY_OWN = ("optimizer_class", "process_group", "parameters_as_bucket_view", "overlap_with_ddp")
"""The parameters of ZeroRedundancyOptimizer behind ``params``, in order; all others go to the class it is given."""


def construction(flow: Flow, call: cst.Call) -> tuple[Node | None, list[cst.Arg]]:
    """The class of the optimizer that a call makes, and the arguments that reach it.

    Looks through ZeroRedundancyOptimizer, which makes an object of the class that it is given, and through a name that
    is bound to a ``functools.partial``; the class is None where it is hidden behind a star.
    """
    func: Node = call.func
    args = list(call.args)
    if isinstance(func, cst.Name):
        bindings = flow.by_place.get(flow.variable(func.value, flow.tree.statement(call).function), ())
        made = bindings[0].value if len(bindings) == 1 else None
        if isinstance(made, cst.Call) and is_partial(flow, made):
            func = made.args[0].value
            args = [*(a for a in made.args[1:] if a.keyword is None), *args, *(a for a in made.args[1:] if a.keyword)]
    if not flow.imports.names(func) & REDUNDANCY_NAMES:
        return func, args
    own = [arg for position, arg in enumerate(args) if redundancy_parameter(position, arg) is not None]
    cls = next((a.value for i, a in enumerate(args) if redundancy_parameter(i, a) == "optimizer_class"), None)
    return cls, [arg for arg in args if arg not in own]


def redundancy_parameter(position: int, arg: cst.Arg) -> str | None:
    """The parameter of its own that an argument of ZeroRedundancyOptimizer fills; None for ``params`` and the class's."""
    if arg.star:
        return None
    if arg.keyword is not None:
        return arg.keyword.value if arg.keyword.value in REDUNDANCY_OWN else None
    return REDUNDANCY_OWN[position - 1] if 1 <= position <= len(REDUNDANCY_OWN) else None


def is_partial(flow: Flow, call: cst.Call) -> bool:
    """Whether a call is ``functools.partial(something, …)``."""
    return "functools.partial" in flow.imports.names(call.func) and bool(call.args) and not call.args[0].star


def is_scheduler_call(roles: Roles, call: cst.Call) -> bool:
    """Whether a call makes a learning-rate scheduler."""
    for name in roles.flow.imports.names(call.func):
        last = name.rpartition(".")[2]
        if "lr_scheduler" in name and last[:1].isupper():
            return True
        if SCHEDULER_WORD.search(last) and not last.startswith(("adjust", "update", "step", "load")):
            return True
    return False


def is_made_here(flow: Flow, call: cst.Call) -> bool:
    """Whether a call makes the object itself, rather than running a factory of this file that returns it."""
    callee = flow.callee(call)
    return callee is None or callee.name == "__init__"


def is_parser_call(call: cst.Call) -> bool:
    """Whether a call reads options rather than making an object."""
    text = dotted(call.func) or ""
    return text.endswith(("parse_args", "add_argument", "add_argument_group", "get", "pop", "state_dict"))


def is_amp_initialize(roles: Roles, call: cst.Call) -> bool:
    """Whether a call is apex's ``amp.initialize``."""
    return any(name.endswith("amp.initialize") for name in roles.flow.imports.names(call.func))
