"""Copies of the model, and files of the whole model, leave the engine's hooks behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.roles import is_module
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Expr, Obj, Tensor, TensorKind, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Replace

IDEAS = (
    Idea(
        "MG506",
        "Copies and averages take the module",
        "deepcopy, torch.jit.script, averaging classes and torch.save of the whole model take a bare copy of engine.module.",
        "The engine holds locks and process groups and cannot be copied or pickled, and the module carries its hooks, which cannot "
        "be pickled or compiled by torch.jit.script either, no more than its parameters at ZeRO 1 and 2.",
        "measured against DeepSpeed 0.19.8",
        Kind.CONVERTED,
    ),
)
_PART = "copy_of_module"
_RUN_HOOKS = frozenset({"torch.jit.trace", "torch.onnx.export", "torch.fx.symbolic_trace"})
"""What runs the hooks of a module, and neither copies nor compiles them."""
_STAGE3 = "the whole model cannot be copied at ZeRO 3: copy it before deepspeed.initialize, or gather its weights"


def copies(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The decisions about copies of the model."""
    places: dict[ast.AST, list[Event]] = {}
    for event in training.events(Happening.COPY):
        if training.is_model(event["of"]) or training.is_wrapped(event["of"]):
            places.setdefault(event.node, []).append(event)
    for node, events in places.items():
        event = events[0]
        if not isinstance(node, ast.Call) or not any(
            isinstance(one, Obj) or one in training.models for one in each(event["of"])
        ):
            continue
        there = {training.has_engine(one) for one in events}
        if there == {False}:
            continue
        given = _given(node)
        if given is None or there != {True}:
            yield Decision(
                "MG506",
                Kind.TODO,
                event.module,
                node,
                "copy engine.module here, not the engine",
                "the engine cannot be copied",
            )
        elif constant(event["name"]) in _RUN_HOOKS:
            if training.says_engine(event, given):
                yield Decision(
                    "MG506", Kind.CONVERTED, event.module, node, "the module is taken, not the engine", "the engine cannot be traced",
                    edits=(Replace(event.module, given, (given, ".module")),),
                )  # fmt: skip
        elif constant(event["name"]) in {"copy.deepcopy", "copy.copy"}:
            yield _decision(event, node, (Replace(event.module, node, _copied(training, event, given)),))
        else:
            yield _decision(event, node, (Replace(event.module, given, _copied(training, event, given)),))


def whole(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The decisions about files of the whole model."""
    places: dict[ast.AST, list[Event]] = {}
    for event in training.events(Happening.SAVE):
        if training.has_engine(event) is not False and any(
            _is_whole(training, one) for one in training.analysis.run.things_in(event["content"])
        ):
            places.setdefault(event.node, []).append(event)
    for node, events in places.items():
        event = events[0]
        found = _given(node) if isinstance(node, ast.Call) else None
        candidates = [*found.values] if isinstance(found, ast.Dict) else [found]
        if isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.func.id == "dict":
            candidates = [keyword.value for keyword in found.keywords]
        edits: list[Edit] = []
        for one in candidates:
            if one is None:
                continue
            values = training.values_at(event, one)
            if values and all(_is_whole(training, value) for value in values):
                edits.append(Replace(event.module, one, _copied(training, event, one)))
        if edits:
            yield _decision(event, node, tuple(edits))
        else:
            yield Decision("MG506", Kind.TODO, event.module, node, "save ds_compat.copy_of_module(engine.module), not the engine",
                           "the engine and its hooks cannot be pickled")  # fmt: skip


def _is_whole(training: Training, value: Value) -> bool:
    """Whether a value is the model or a module in it."""
    if training.is_wrapped(value) or value in training.models:
        return True
    return (
        isinstance(value, Obj | Expr)
        and training.is_model(value)
        and not training.is_copy(value)
        and not training.is_optimizer(value)
        and _is_module(training, value)
    )


def _is_module(training: Training, value: Obj | Expr) -> bool:
    return (isinstance(value, Expr) and value.op == "part") or is_module(training.analysis.run, value)


def parameters(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Mark parameters that go into a file as they are, not their values."""
    for event in {event.node: event for event in training.events(Happening.SAVE)}.values():
        if training.has_engine(event) is False:
            continue
        held = [
            one
            for one in training.analysis.run.things_in(event["content"])
            if isinstance(one, Tensor) and one.kind is TensorKind.PARAMETER
        ]
        if any(not one.detached and one.of is not None and training.is_model(one.of) for one in held):
            yield Decision(
                "MG506", Kind.TODO, event.module, event.node, "save parameter.detach().clone(), not the parameter: it carries the optimizer's state",
                "at ZeRO 1-3 it cannot be pickled",
            )  # fmt: skip


def _given(node: ast.Call) -> ast.expr | None:
    if node.args:
        return node.args[0]
    return next((one.value for one in node.keywords if one.arg in {"model", "obj", "x"}), None)


def _copied(training: Training, event: Event, given: ast.expr) -> tuple[str | ast.expr, ...]:
    module = ".module" if training.says_engine(event, given) else ""
    return (f"ds_compat.{_PART}(", given, f"{module})")


def _takes_module(edit: Edit) -> bool:
    return isinstance(edit, Replace) and any(isinstance(one, str) and ".module" in one for one in edit.code)


def _decision(event: Event, node: ast.AST, edits: tuple[Edit, ...]) -> Decision:
    return Decision(
        "MG506", Kind.CONVERTED, event.module, node, "a bare copy of the module is taken", "the engine's hooks cannot be copied or pickled",
        edits=edits, parts=frozenset({_PART}), stage=2, suits_all=not any(_takes_module(edit) for edit in edits),
        otherwise=Decision("MG506", Kind.TODO, event.module, node, _STAGE3, "its parameters are partitioned"),
    )  # fmt: skip
