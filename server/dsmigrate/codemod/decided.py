"""Whether a result calls DeepSpeed and ``ds_compat`` as was decided, and drops no gradients that a step needs."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import Analysis
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.meeting import is_first_of_node
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.deepspeed import COLLECTIVE
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Obj, Value, each, show
from dsmigrate.codemod.compat import NAME
from dsmigrate.codemod.program.edits import AddArgument, Edit, Insert, Replace, ReplaceStatement, texts
from dsmigrate.codemod.settle import Settled
from dsmigrate.languages import mark, told

_PART = re.compile(rf"\b{NAME}\.(\w+)\(")
_TOGETHER = frozenset({*COLLECTIVE, "keep_torch_checkpoints"})
"""The parts that wait for all ranks."""


def misfits(training: Training, settled: tuple[Settled, ...], after: Analysis) -> Iterator[tuple[str, Event]]:
    """What a result does that was not decided, each with an event of it."""
    made = [event for event in after.of(Happening.WRAP) if _is_engine(event["wrapper"])]
    if not made:
        return
    decisions = [decision for one in settled for decision in one.decisions]
    said = [text for decision in decisions for edit in decision.edits for text in _said(edit)]
    calls = {ast.unparse(node) for text in said for node in _initializations(text)}
    for event in made:
        if calls and isinstance(event.node, ast.Call) and ast.unparse(event.node) not in calls:
            yield mark("deepspeed.initialize with other arguments than were settled"), event
    parts = list(after.of(Happening.PART))
    called = {event["name"] for event in parts}
    for name in sorted({name for text in said for name in _PART.findall(text)}):
        if Const(name) not in called:
            yield told("the training without {part}", part=f"{NAME}.{name}"), made[0]
    for event in parts:
        name = event["name"].value if isinstance(event["name"], Const) else ""
        if name in _TOGETHER and any(
            block.test.varies and is_first_of_node(block.test) for block in event.block.around()
        ):
            yield told("{part} on some ranks only", part=f"{NAME}.{name}"), event
    written = {event["name"] for event in training.events(Happening.ACCESS) if "value" in event.what}
    for event in after.of(Happening.ACCESS):
        if "value" in event.what and event["name"] not in written and _is_engine(event["of"]):
            yield told("{name} of the engine is set", name=show(event["name"])), event
    extra = Counter(map(_place, _between(after))) - Counter(map(_place, _between(training.analysis)))
    for event in _between(after):
        if extra[_place(event)] > 0:
            yield mark("gradients dropped between backward and step"), event


def _is_engine(value: Value) -> bool:
    return any(isinstance(one, Obj) and role_of(one) is Role.ENGINE for one in each(value))


def _said(edit: Edit) -> Iterator[str]:
    """The code that an edit writes."""
    match edit:
        case Replace(code=code):
            yield texts((code,), edit.module)
        case Insert(code=lines) | ReplaceStatement(code=lines):
            yield texts(lines, edit.module)
        case AddArgument(value=value):
            yield texts((value,), edit.module)


def _initializations(text: str) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "deepspeed.initialize":
            yield node


def _between(analysis: Analysis) -> Iterator[Event]:
    """The zeroings that come behind a backward and before the next step in the same block."""
    last: Event | None = None
    for event in analysis.of(Happening.BACKWARD, Happening.STEP, Happening.ZERO_GRAD):
        if event.kind is not Happening.ZERO_GRAD:
            last = event
        elif last is not None and last.kind is Happening.BACKWARD and last.block in event.block.around():
            yield event


def _place(event: Event) -> str:
    return event.module.path
