"""What is known of the classes of models: whether a class is one, what it makes and freezes, when its methods run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Class, Function, Node, Statement

_MODULE = re.compile(r"(?:^|\.)(?:Module|LightningModule|PreTrainedModel)$")
_LAYER = re.compile(r"^(?:torch\.)?nn\.(?:modules\.\w+\.)?(?!Parameter$|Buffer$|DataParallel$)[A-Z]\w*$")
_OF_A_LAYER = re.compile(
    r"^(?:weight|bias|in_proj_(?:weight|bias)|[qkv]_proj_weight|bias_[kv]|(?:weight|bias)_[ih]h_l\d+\w*)$"
)
_BEGINS = re.compile(r"^_*(?:init|reset|build|setup|make|create)", re.IGNORECASE)
_IS_RUN = re.compile(r"^(?:forward|train|eval|__\w+__)$")
_LISTS = ("Parameter", "ParameterList", "ParameterDict")
_DEPTH = 6


def above(plan: Plan, cls: Class) -> list[Class]:
    """A class and all its bases that stand in the tree."""
    found = [cls]
    for one in found:
        found += [base for base in plan.flow.bases(one) if base not in found]
    return found


def related(plan: Plan, cls: Class) -> list[Class]:
    """The classes that an object with a class's methods may have, and their bases: the same attributes."""
    known: dict[Class, list[Class]] = plan.facts.setdefault("related_classes", {})
    if cls not in known:
        found = above(plan, cls)
        below = [one for one in plan.tree.classes.values() if one not in found and cls in above(plan, one)]
        known[cls] = [*found, *below]
    return known[cls]


def is_module(plan: Plan, cls: Class) -> bool:
    """Whether objects of a class are modules: by a base, be it through classes of the project, or by a ``forward``."""
    if any(_MODULE.search(name) or _LAYER.match(name) for one in above(plan, cls) for name in _bases(plan, one)):
        return True
    forward = cls.methods.get("forward")
    return bool(set(cls.bases) - {"object"}) and forward is not None and not forward.is_static


def _bases(plan: Plan, cls: Class) -> Iterator[str]:
    """The names of a class's bases, as written and as imported."""
    yield from cls.bases
    for base in cls.node.bases:
        yield from plan.imports.names(base.value)


def is_method_of_a_module(plan: Plan, function: Function) -> bool:
    """Whether a function runs within a model that trains: not in ``__init__``, which is over before the engine."""
    owner = function.owner
    if owner is None or function.name.startswith(("__init__", "_init", "init_", "reset_parameters")):
        return False
    return is_module(plan, owner)


def is_beginning(function: Function) -> bool:
    """Whether a method is a part of the module's beginning by its name."""
    return function.name == "__init__" or bool(_BEGINS.match(function.name))


def runs_later(plan: Plan, function: Function, depth: int = _DEPTH) -> bool:
    """Whether a method is more than a part of the module's beginning, which is over before the engine is made."""
    if is_beginning(function):
        return False
    callers = {plan.function_of(call) for call in plan.flow.callers.get(function, ())} - {function}
    if not callers:
        return _is_run(plan, function)
    return depth == 0 or any(runs_later(plan, caller, depth - 1) for caller in callers)


def _is_run(plan: Plan, function: Function) -> bool:
    """Whether a function without known callers is run by something: by torch, or wherever its name is spoken of."""
    if function.owner is None or _IS_RUN.match(function.name):
        return True
    known: dict[str, bool] = plan.facts.setdefault("spoken_names", {})
    if function.name not in known:
        spoken = re.compile(rf"""[.'"]{re.escape(function.name)}\b""")
        known[function.name] = any(spoken.search(text) for text in plan.facts["texts"])
    return known[function.name]


# -- parameters ------------------------------------------------------------------------------------------------------


def has_parameter(plan: Plan, cls: Class, name: str) -> bool:
    """Whether an attribute of a class's objects is a parameter (or a list of such) that is not made as a frozen one."""
    classes = related(plan, cls)
    if any(name in _made(plan, one) for one in classes):
        return True
    if not _OF_A_LAYER.match(name) or any(
        f'register_buffer("{name}"' in code_of(plan, one).replace("'", '"') for one in classes
    ):
        return False
    return any(
        _LAYER.match(base) and not _MODULE.search(base) for one in above(plan, cls) for base in _bases(plan, one)
    )


def code_of(plan: Plan, cls: Class) -> str:
    """The source text of a class."""
    known: dict[Class, str] = plan.facts.setdefault("code_of_classes", {})
    if cls not in known:
        known[cls] = plan.code(cls.node)
    return known[cls]


def _made(plan: Plan, cls: Class) -> set[str]:
    """The names of the parameters that a class's own methods make."""
    known: dict[Class, set[str]] = plan.facts.setdefault("made_parameters", {})
    if cls not in known:
        statements = [statement for function in cls.methods.values() for statement in function.statements]
        known[cls] = {name for statement in statements for name in _makes(plan, statement)}
    return known[cls]


def _makes(plan: Plan, statement: Statement) -> Iterator[str]:
    """``self.w = nn.Parameter(…)``, ``self.w: nn.Parameter = …``, ``self.register_parameter("w", …)``."""
    node, owner = statement.node, statement.function.self_name
    if owner is None:
        return
    if isinstance(node, cst.Assign | cst.AnnAssign):
        if node.value is not None and _is_parameter(plan, node.value, statement.function):
            for target in assigned_to(node):
                if isinstance(target, cst.Attribute) and dotted(target.value) == owner:
                    yield target.attr.value
    elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        call, func = node.value, dotted(node.value.func)
        if func == f"{owner}.register_parameter":
            name, value = argument(call, 0, "name"), argument(call, 1, "param")
        elif (
            func == "setattr"
            and len(call.args) == len(("self", "name", "value"))
            and dotted(call.args[0].value) == owner
        ):
            name, value = call.args[1].value, call.args[2].value
        else:
            return
        if isinstance(name, cst.SimpleString) and value is not None and _is_parameter(plan, value, statement.function):
            yield str(name.evaluated_value)


def _is_parameter(plan: Plan, value: Node, function: Function) -> bool:
    """Whether an expression makes a parameter, or a list of such, that is trained; also through a variable."""
    if isinstance(value, cst.IfExp):
        return any(_is_parameter(plan, branch, function) for branch in (value.body, value.orelse))
    if isinstance(value, cst.Name):
        place = plan.flow.variable(value.value, function)
        bindings = [b for b in plan.flow.by_place.get(place, ()) if b.function is function and b.kind == "assign"]
        return any(isinstance(b.value, cst.Call) and _is_parameter(plan, b.value, function) for b in bindings)
    if not isinstance(value, cst.Call):
        return False
    if not any(name.rpartition(".")[2] in _LISTS for name in plan.imports.names(value.func)):
        return False
    frozen = argument(value, 1, "requires_grad")
    return (frozen is None or dotted(frozen) != "False") and not re.search(
        r"requires_grad\s*=\s*False", plan.code(value)
    )
