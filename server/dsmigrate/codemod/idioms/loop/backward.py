"""``loss.backward()`` becomes ``engine.backward(loss)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, NONE, Const, Tensor, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, by_place, given_at
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Insert, Replace, Template
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG401",
        "loss.backward() becomes engine.backward(loss)",
        "The engine runs backward and averages the gradients.",
        "DDP averages gradients in hooks of the wrapper, which is gone. At ZeRO 0 a plain backward would train each rank by "
        "itself; at ZeRO 1-3 the engine stops.",
        "deepspeed/runtime/engine.py, backward",
        Kind.CONVERTED,
    ),
    Idea(
        "MG411",
        "create_graph must be false",
        "A backward whose create_graph is a variable is preceded by an assertion that it is false.",
        "engine.backward has no create_graph; second-order optimizers, for which the flag is there, cannot be used.",
        "deepspeed/runtime/engine.py, DeepSpeedEngine.backward",
        Kind.KEPT,
    ),
)
_NOT = frozenset((FALSE_VALUE, NONE))


def backward(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that runs backward."""
    for node, events in by_place(event for event in training.backwards if "library" not in event.what).items():
        event = events[0]
        engine = facts.engine(event)
        if engine is None:
            continue
        loss = (
            (_loss(node, is_function="function" in event.what) or _taken(event)) if isinstance(node, ast.Call) else None
        )
        if loss is None:
            yield Decision(
                "MG401",
                Kind.TODO,
                event.module,
                node,
                told("call {engine}.backward(loss) here", engine=engine),
                "how it is written hides the loss",
            )
            continue
        assert isinstance(node, ast.Call)
        yield Decision(
            "MG401", Kind.CONVERTED, event.module, node, f"loss.backward() → {engine}.backward(loss)", "the engine averages the gradients",
            edits=(Replace(event.module, node, (f"{engine}.backward(", *_weighted(node, events, loss), *_kept(node, events), ")")),),
        )  # fmt: skip
        yield from _second_order(node, events)


def _loss(node: ast.Call, *, is_function: bool) -> Template | None:
    """The loss in a call that runs its backward."""
    if is_function:
        given = given_at(node, 0, "tensors")
        if isinstance(given, ast.List | ast.Tuple) and given.elts:
            return tuple(part for index, one in enumerate(given.elts) for part in ((" + ", one) if index else (one,)))
        return None if given is None else (given,)
    if isinstance(node.func, ast.Attribute):
        return (node.func.value,)
    if isinstance(node.func, ast.Call) and len(node.func.args) == 2:  # getattr(loss, "backward")()
        return (node.func.args[0],)
    return None


def _taken(event: Event) -> Template | None:
    """The loss whose bound method was put into a variable of the same block: ``run = loss.backward``, ``run()``."""
    step = event.module.step(event.node)
    variable = event.node.func if isinstance(event.node, ast.Call) else None
    for earlier in reversed(step.body[: step.index]):
        match earlier:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(value=ast.Name(id=loss), attr="backward")):
                if isinstance(variable, ast.Name) and variable.id == name:
                    return (loss,)
        if not isinstance(earlier, ast.Assign | ast.Expr):
            return None
    return None


def _weighted(node: ast.Call, events: list[Event], loss: Template) -> Template:
    """``(loss * gradient).sum()``, whose backward is that of the loss from a gradient that is given."""
    given = [event.what["gradient"] for event in events if event.what.get("gradient", NONE) != NONE]
    gradient = given_at(node, 1 if "function" in events[0].what else 0, "gradient")
    if gradient is None or not any(isinstance(one, Tensor) for value in given for one in each(value)):
        return loss
    return ("(", *_apart(loss), " * ", *_apart((gradient,)), ").sum()")


def _apart(code: Template) -> Template:
    """Code as it can stand beside an operator."""
    plain = len(code) == 1 and isinstance(code[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)
    return code if plain else ("(", *code, ")")


def _kept(node: ast.Call, events: list[Event]) -> Template:
    """The arguments that engine.backward takes too: ``retain_graph`` unless it is False, and ``**kwargs``."""
    found: list[str | ast.expr] = []
    value = given_at(node, 2 if "function" in events[0].what else 1, "retain_graph")
    if value is not None and any(
        one not in _NOT for event in events for one in each(event.what.get("retain_graph", NONE))
    ):
        found += [", retain_graph=", value]
    for keyword in node.keywords:
        if keyword.arg is None:
            found += [", **", keyword.value]
    return tuple(found)


def _second_order(node: ast.Call, events: list[Event]) -> Iterator[Decision]:
    """An assertion where a graph of gradients may be asked for."""
    value = given_at(node, 3 if "function" in events[0].what else 2, "create_graph")
    options = [one for event in events for one in each(event.what.get("create_graph", NONE))]
    if (
        value is None
        or isinstance(value, ast.Constant)
        or all(isinstance(one, Const) and not one.value for one in options)
    ):
        return
    module = events[0].module
    test: Template = (value,) if isinstance(value, ast.Name | ast.Attribute) else ("(", value, ")")
    edits: tuple[Edit, ...] = (Insert(module, module.step(node).node, (("assert not ", *test),)),)
    yield Decision(
        "MG411",
        Kind.KEPT,
        module,
        node,
        told("{code} must be false: the engine keeps no graph of gradients", code=module.text(value)),
        edits=edits,
    )
