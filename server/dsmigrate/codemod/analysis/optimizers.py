"""How an optimizer is made: by which class, of which parameters, with which options, and who looks at it before the engine."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import static_value
from dsmigrate.codemod.analysis.code import said
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.site import Site
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Obj, Tup, Value, each
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
_HOW = frozenset({"foreach", "fused", "capturable", "differentiable", "maximize"})
_USES = (Happening.STATE, Happening.RESTORE, Happening.RATE_WRITE, Happening.HOOK)


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
    made = [
        event
        for event in training.events(Happening.MADE)
        if event["role"] == Const("optimizer") and training.is_optimizer(event["what"])
    ]
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
