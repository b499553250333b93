"""Windows of accumulation stay the script's own; what switched DDP's reducer off goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod import targets
from dsmigrate.codemod.analysis.analysis import library_name, loops_around, nearest_common, under, within
from dsmigrate.codemod.analysis.code import condition_said
from dsmigrate.codemod.analysis.conditions import either, literals_of
from dsmigrate.codemod.analysis.conditions import under as holding
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision, Need, Setting
from dsmigrate.codemod.idioms.facts import Facts, by_place
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Remove, Replace, Unwrap
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG404",
        "Accumulation keeps the script's own windows",
        "managed_gradient_accumulation is false: the engine steps where the script steps, and the script's own division of "
        "the loss stays.",
        "Exact at ZeRO 0-3, partial windows included. DeepSpeed's own accumulation divides the loss and counts the steps itself. "
        "At ZeRO 0 a window of 1 with several backwards and one step is exact as well, and p.grad is what DDP gave after each "
        "of them: that is chosen where code looks at it.",
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
    Idea(
        "MG406",
        "The end of a window is marked by hand",
        "The engine is told by set_gradient_accumulation_boundary which backward ends a window.",
        "managed_gradient_accumulation is new in 0.19.4. From 0.17.6 to 0.18.2 stage 2 loses all micro-batches of a window but "
        "the last, so that for these releases the config gets at most stage 1.",
        "deepspeed/runtime/engine.py, set_gradient_accumulation_boundary",
        Kind.CONVERTED,
    ),
)


def windows(training: Training, facts: Facts) -> Iterator[Decision]:
    """Say that windows stay, with the setting that they need."""
    if not facts.accumulates or not training.steps:
        return
    event = training.steps[0]
    release = facts.options.target_version
    if (
        targets.holds("lost_micro_batches", release)
        and facts.options.offload == "none"
        and facts.options.zero_stage != 3
    ):
        message = told("DeepSpeed {release} keeps only the last micro-batch of a window at ZeRO 2", release=release)
        reason = "gradients of the earlier ones are overwritten; 0.17.5 and 0.18.3 are right"
        yield Decision(
            "MG406", Kind.KEPT, event.module, event.node, message, reason, stage=1,
            otherwise=Decision("MG406", Kind.TODO, event.module, event.node, told("{message}: choose stage 1", message=message), reason),
        )  # fmt: skip
    if not targets.holds("managed_gradient_accumulation", release):
        yield from _marked(training, facts)
        return
    averaged = Decision(
        "MG404", Kind.KEPT, event.module, event.node, "your accumulation loop is unchanged; gradients are averaged at every backward",
        "code between backward and step looks at them",
    )  # fmt: skip
    yield Decision(
        "MG404", Kind.KEPT, event.module, event.node, "your accumulation loop is unchanged; DeepSpeed's own is off",
        "managed_gradient_accumulation: false", config={"managed_gradient_accumulation": Setting(None, static=False)},
        excludes=frozenset({Need.WHOLE_GRADIENTS}), otherwise=averaged,
    )  # fmt: skip


def _marked(training: Training, facts: Facts) -> Iterator[Decision]:
    """For releases that have no unmanaged accumulation: whether a backward is the last of its window is said before it."""
    for node, events in by_place(training.backwards).items():
        event = events[0]
        engine = facts.engine(event)
        module = event.module
        mark = _end_of_window(training, event)
        if engine is None or mark is None:
            yield Decision(
                "MG406", Kind.TODO, module, node, "call set_gradient_accumulation_boundary(True or False) on the engine before each backward",
                "managed_gradient_accumulation is new in 0.19.4",
            )  # fmt: skip
            continue
        line = f"{engine}.set_gradient_accumulation_boundary({mark})"
        yield Decision(
            "MG406", Kind.CONVERTED, module, node, line, "the engine averages gradients in the last backward of a window",
            edits=(Insert(module, module.step(node).node, ((line,),)),), lines=(0, 0),
        )  # fmt: skip


def _end_of_window(training: Training, backward: Event) -> str | None:
    """The test that tells, at a backward, whether a step comes before the next one; None where none does."""
    loop = next(iter(loops_around(backward)), None)
    behind = [step for step in training.steps if step.number > backward.number]
    if loop is None or not behind or not all(under(step.block, loop) for step in behind):
        return None  # leftovers are stepped elsewhere
    common = nearest_common([backward, *behind])
    test = either(*(within(step, common) for step in behind))
    assumed = {literal.atom: literal.holds for literal in literals_of(within(backward, common))}
    return condition_said(holding(test, assumed), backward.names)


def no_sync(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Take out what kept DDP from exchanging gradients."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.SYNC):
        if event.node in seen or not training.is_wrapper(event["of"]):
            continue
        seen.add(event.node)
        edits, imports = _without(event)
        yield Decision(
            "MG405", Kind.CONVERTED, event.module, event.node, told("{code} removed", code=event.module.text(_shown(event))),
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
    return (
        len(others) == 1
        and isinstance(others[0], ast.Call)
        and library_name(others[0].func, event.names) == "contextlib.nullcontext"
    )
