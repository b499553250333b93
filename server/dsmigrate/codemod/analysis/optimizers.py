"""How an optimizer is made: by which class, of which parameters, with which options, and who looks at it before the engine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import static_value
from dsmigrate.codemod.analysis.code import said
from dsmigrate.codemod.analysis.containers import REST
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.site import Site
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import UNBOUND, Const, Kind, Obj, Tensor, Tup, Value, each
from dsmigrate.codemod.program.module import Module

TYPES: dict[str, tuple[tuple[str, ...], dict[str, object]]] = {
    "Adam": (("lr", "betas", "eps", "weight_decay"), {"lr": 1e-3, "weight_decay": 0.0, "adam_w_mode": False}),
    "AdamW": (("lr", "betas", "eps", "weight_decay"), {"lr": 1e-3, "weight_decay": 0.01}),
    "SGD": (("lr", "momentum", "dampening", "weight_decay", "nesterov"), {"lr": 1e-3}),
    "Adagrad": (("lr", "lr_decay", "weight_decay"), {"lr": 1e-2}),
    "RMSprop": (("lr", "alpha", "eps", "weight_decay", "momentum"), {"lr": 1e-2}),
    "NAdam": (("lr", "betas", "eps", "weight_decay"), {}),
    "RAdam": (("lr", "betas", "eps", "weight_decay"), {}),
    "Adamax": (("lr", "betas", "eps", "weight_decay"), {}),
}
"""torch's optimizers that DeepSpeed makes by name: positional options behind the parameters; torch's defaults that differ."""
_MOMENTUM = {"SGD": "momentum", "Adam": "", "AdamW": "", "NAdam": "", "RAdam": "", "Adamax": ""}
"""The option without which an optimizer has no momentum, "" for one that always has; of the others that is not known."""
_HOW = frozenset({"foreach", "fused", "capturable", "differentiable", "maximize"})
_USES = (Happening.STATE, Happening.RESTORE, Happening.RATE_WRITE, Happening.HOOK)


def makings(training: Training) -> Iterator[Event]:
    """Where the optimizers of a training are made."""
    for event in training.events(Happening.MADE):
        if event["role"] == Const("optimizer") and training.is_optimizer(event["what"]):
            yield event


def given_by_name(event: Event) -> dict[str, Value]:
    """The options that an optimizer is made with; those of torch's without a name by their places."""
    kinds = {_kind(one) for one in each(event["what"])}
    positions = TYPES[kinds.pop()][0] if len(kinds) == 1 and kinds <= TYPES.keys() else ()
    placed = dict(zip(positions, getattr(event["arguments"], "items", ()), strict=False))
    named = {name.removeprefix("arg_"): value for name, value in event.what.items() if name.startswith("arg_")}
    return placed | named


def moved_unused(training: Training) -> tuple[bool, bool] | None:
    """Whether weight decay, and momentum, move a weight whose gradient is zero; None where the options are not known."""
    decays = keeps_moving = False
    made = list(makings(training))
    if not training.optimizers <= {one for event in made for one in each(event["what"])}:
        return None
    for event in made:
        given = given_by_name(event)
        groups = _groups(event["params"])
        for thing in each(event["what"]):
            kind = _kind(thing)
            if kind not in _MOMENTUM or groups is None:
                return None
            defaults = {"weight_decay": Const(TYPES[kind][1].get("weight_decay", 0.0)), "momentum": Const(0)} | given
            momentum = _MOMENTUM[kind]
            decays = decays or any(_may_be(group, defaults, "weight_decay") for group in groups)
            keeps_moving = keeps_moving or not momentum or any(_may_be(group, defaults, momentum) for group in groups)
    for event in training.events(Happening.RATE_WRITE):
        if training.is_optimizer(event["of"]) and event["key"] != Const("lr"):
            return None
    return decays, keeps_moving


def _kind(thing: Value) -> str:
    return thing.made_by.removeprefix("torch.optim.") if isinstance(thing, Obj) and thing.cls is None else ""


def _may_be(group: Obj | None, defaults: dict[str, Value], name: str) -> bool:
    """Whether a group's option may be something else than 0."""
    value = defaults[name] if group is None else group.value_of(name, defaults[name])
    return any(not isinstance(one, Const) or bool(one.value) for one in each(value))


def _groups(params: Value) -> set[Obj | None] | None:
    """The groups of an optimizer, None for its parameters without one; None where that is not known."""
    found: set[Obj | None] = set()
    pending, seen = list(each(params)), set[Value]()
    while pending:
        one = pending.pop()
        if one in seen or one is UNBOUND:
            continue
        seen.add(one)
        if isinstance(one, Tensor):
            found.add(None)
        elif isinstance(one, Tup):
            pending += [inner for item in one.items for inner in each(item)]
        elif isinstance(one, Obj) and one.kind is Kind.DICT and not one.has(REST):
            found.add(one)
        elif isinstance(one, Obj) and one.kind in {Kind.LIST, Kind.SET, Kind.ITERATOR}:
            pending += [inner for item in one.own.values() for inner in each(item)]
        else:
            return None
    return found


@dataclass(frozen=True, slots=True)
class Moved:
    """An optimizer that can be made of a config: by ``statement`` of ``module``, of ``parameters`` as they are written there.

    ``options`` have, by name, the value, what stands in the config, and the expression for the run ("" for none).
    """

    module: Module
    statement: ast.stmt
    kind: str
    parameters: str
    options: dict[str, tuple[Value | None, object, str]]


def moved(training: Training, site: Site) -> Moved | str:
    """The optimizer of a training as a config's; why it cannot be one."""
    made = list(makings(training))
    if len({event.node for event in made}) != 1:
        return f"{len({event.node for event in made})} places make it"
    event = made[0]
    thing = next((one for one in each(event["what"]) if isinstance(one, Obj)), None)
    kind = thing.made_by.removeprefix("torch.optim.") if thing is not None and thing.cls is None else ""
    if kind not in TYPES or thing is None or not isinstance(event.node, ast.Call):
        return "its class has no config type"
    step = event.module.step(event.node)
    if (
        not isinstance(step.node, ast.Assign)
        or step.node.value is not event.node
        or step.function is not site.module.step(site.node).function
    ):
        return "it is made in another function than the engine"
    if (
        any(isinstance(arg, ast.Starred) for arg in event.node.args)
        or any(keyword.arg is None for keyword in event.node.keywords)
        or not event.node.args
    ):
        return "its arguments cannot be read"
    user = _user(training, event, site)
    if user is not None:
        return user
    options = _options(training, thing, event, kind, site)
    return (
        options
        if isinstance(options, str)
        else Moved(event.module, step.node, kind, _said(event.module, event.node.args[0], site), options)
    )


def _said(module: Module, parameters: ast.expr, site: Site) -> str:
    """The code of the parameters, of the plain model where the name of the wrapped one is bound to the engine only."""
    text = module.text(parameters)
    reads = {module.text(one) for one in ast.walk(parameters) if one in site.reads}
    return re.sub(rf"(?<![\w.]){re.escape(reads.pop())}\b", lambda _: site.model, text) if reads else text


def _user(training: Training, made: Event, site: Site) -> str | None:
    """What looks at the optimizer before the engine is made."""
    for event in training.analysis.events:
        if not made.number < event.number <= site.number:
            continue
        if (
            event.kind is Happening.MADE
            and event["role"] == Const("scheduler")
            and training.is_optimizer(event["optimizer"])
        ):
            return "a schedule is built on it before the engine is made"
        if event.kind in _USES and training.is_optimizer(event["of"]):
            return "the script uses it before the engine is made"
    return None


def _options(
    training: Training, thing: Obj, event: Event, kind: str, site: Site
) -> dict[str, tuple[Value | None, object, str]] | str:
    positions, defaults = TYPES[kind]
    given = thing.data["arguments"]
    if len(given["args"]) - 1 > len(positions):
        return "it has more positional arguments than are known"
    values = dict(zip(positions, given["args"][1:], strict=False)) | {
        name: value for name, value in given["named"].items() if name not in _HOW | {"params"}
    }
    found: dict[str, tuple[Value | None, object, str]] = {name: (None, value, "") for name, value in defaults.items()}
    for name, value in values.items():
        static, constant = _static(training, value)
        code = "" if constant else said(value, site.names)
        if code is None or (constant and static is None):
            return f"{name} is not known where the engine is made"
        found[name] = (value, static, code)
    del event
    return found


def _static(training: Training, value: Value) -> tuple[object, bool]:
    """What a value is by default, and whether it is that in every run."""
    if isinstance(value, Tup):
        parts = [_static(training, item) for item in value.items]
        return ([part for part, _ in parts] if all(part is not None for part, _ in parts) else None), all(
            constant for _, constant in parts
        )
    return static_value(training.analysis, value), isinstance(value, Const)
