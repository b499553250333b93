"""Windows of accumulation stay the script's own; what switched DDP's reducer off goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts, library_name
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Import, Remove, Replace, Unwrap

IDEAS = (
    Idea(
        "MG404",
        "Accumulation keeps the script's own windows",
        "managed_gradient_accumulation is false: the engine steps where the script steps, and the script's own division of "
        "the loss stays.",
        "Exact at ZeRO 0-3, partial windows included. DeepSpeed's own accumulation divides the loss and counts the steps itself.",
        "deepspeed/runtime/config.py, managed_gradient_accumulation",
        Kind.KEPT,
    ),
    Idea(
        "MG405",
        "no_sync goes",
        "Skipping DDP's gradient exchange has no place in the engine; it asserts at ZeRO 2 and 3.",
        "At ZeRO 1 the engine exchanges gradients once per step, as DDP did with no_sync; at ZeRO 2 at every backward.",
        "deepspeed/runtime/engine.py, no_sync",
        Kind.CONVERTED,
    ),
)


def windows(training: Training, facts: Facts) -> Iterator[Decision]:
    """Say that windows stay, with the setting that they need."""
    if not facts.accumulates or not training.steps:
        return
    event = training.steps[0]
    yield Decision(
        "MG404", Kind.KEPT, event.module, event.node, "your accumulation loop is unchanged; DeepSpeed's own is off",
        "managed_gradient_accumulation: false",
        config={"managed_gradient_accumulation": Setting(None, static=False)},
    )  # fmt: skip


def no_sync(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Take out what kept DDP from exchanging gradients."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.SYNC):
        if event.node in seen or not training.is_wrapper(event["of"]):
            continue
        seen.add(event.node)
        edits, imports = _without(event)
        yield Decision(
            "MG405", Kind.CONVERTED, event.module, event.node, f"{event.module.text(_shown(event))} removed",
            "it switches DDP's reducer",
            edits=edits, imports=imports, lines=None,
        )  # fmt: skip


def _shown(event: Event) -> ast.expr | ast.stmt:
    node = event.node
    assert isinstance(node, ast.expr)
    return node


def _without(event: Event) -> tuple[tuple[Edit, ...], tuple[Import, ...]]:
    module = event.module
    step = module.step(event.node)
    statement = step.node
    if isinstance(statement, ast.Assign) and isinstance(event.node, ast.Attribute):
        return (Remove(module, statement),), ()
    if isinstance(statement, ast.With) and len(statement.items) == 1:
        manager = statement.items[0].context_expr
        if manager is event.node or (isinstance(manager, ast.IfExp) and _is_null(manager, event)):
            return (Unwrap(module, statement),), ()
    return (Replace(module, event.node, ("contextlib.nullcontext()",)),), (Import(module, "contextlib"),)


def _is_null(manager: ast.IfExp, event: Event) -> bool:
    """Whether a conditional expression is ``no_sync`` in one case and no manager in the other."""
    arms = [manager.body, manager.orelse]
    others = [arm for arm in arms if arm is not event.node]
    return len(others) == 1 and isinstance(others[0], ast.Call) and library_name(others[0].func, event.names) == "contextlib.nullcontext"
