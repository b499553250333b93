"""The wrap goes, and ``deepspeed.initialize`` makes the engine where model and optimizer are both there."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dsmigrate.codemod.analysis.containers import REST, items_of
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.site import Site, argument, holders_said, is_call_of, wrapped_model
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Obj, Tup, each
from dsmigrate.codemod.analysis.values import Kind as Of
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Remove, Replace, Template
from dsmigrate.codemod.program.module import Module, Step
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG101",
        "DistributedDataParallel becomes a DeepSpeed engine",
        "The wrap goes; deepspeed.initialize makes the engine from the raw model and the script's own optimizer.",
        "The engine stands in for the wrapped model: it is called like it, and has .module. What else held the wrapped model "
        "until then is given the engine too.",
        "deepspeed/__init__.py, initialize",
        Kind.CONVERTED,
    ),
    Idea(
        "MG102",
        "DataParallel fallback unwrapped",
        "torch.nn.DataParallel inside an engine would replicate the module again; the plain module is used.",
        "One process drives one device.",
        "deepspeed/runtime/engine.py, _configure_distributed_model",
        Kind.CONVERTED,
    ),
    Idea(
        "MG105",
        "A wrapped model that nothing trains stays in DDP",
        "A wrapped model that no backward reaches (a teacher, a loss network) keeps its wrap.",
        "An engine needs an optimizer; a model that is only evaluated or averaged trains nothing and is left alone.",
        "deepspeed/runtime/engine.py: 'zero stage N requires an optimizer'",
        Kind.KEPT,
    ),
    Idea(
        "MG712",
        "Each training of a loop makes an engine of its own",
        "Where the training runs once for each fold, seed or setting, each run makes its engine; at ZeRO 1-3 the one before "
        "stays in memory, and a process group that is made anew for each run is marked.",
        "The second engine trains as the first one would. The hooks of ZeRO hold the model and the optimizer of the one before; "
        "engine.destroy() frees them at ZeRO 1 and 2. torch's destroy_process_group leaves groups behind that DeepSpeed keeps, "
        "and the next deepspeed.initialize stops at them.",
        "deepspeed/runtime/engine.py, destroy; deepspeed/utils/groups.py; measured on two CPU processes, ZeRO 0-3",
        Kind.KEPT,
    ),
)
CONFIG = "@config@"
"""Stands in an edit for the expression of the config, which is known when all decisions are."""


def wrap(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about the wraps of the model, and about the engine."""
    site = facts.site
    before, after = "deepspeed.initialize(model=", f", {facts.optimizer_argument}, config={CONFIG})[0]"
    taken_off: set[ast.Call] = set()
    for node, event in {event.node: event for event in training.wraps}.items():
        model = wrapped_model(node)
        if model is None:
            yield Decision("MG101", Kind.TODO, event.module, node, "this wrap hides its model: pass the plain model on")
            continue
        statement = event.module.step(node).node
        edits: tuple[Edit, ...]
        beside: Decision | None = None
        if site.wrap is not None and site.wrap.node is node:
            edits = (Replace(event.module, node, (before, model, after)),)
        elif statement is site.unwrapped:
            edits = (Remove(event.module, statement), *(Replace(site.module, read, (model,)) for read in site.reads))
        else:
            edits = _plain(training, event.module, node, model)
            beside = _at_calls(training, event, model, taken_off)
        yield Decision(
            "MG101", Kind.CONVERTED, event.module, node, "DistributedDataParallel → the model itself, in deepspeed.initialize",
            "the engine takes the wrapper's place", edits=edits, beside=beside,
        )  # fmt: skip
    lines: tuple[Template, ...] = () if site.wrap is not None else ((f"{site.target} = {before}{site.model}{after}",),)
    lines += tuple((line,) for line in holders_said(site))
    yield Decision(
        "MG101", Kind.CONVERTED, site.module, site.node, f"{site.target} = deepspeed.initialize(…)",
        "model and optimizer are both there from here on", imports=(Import(site.module, "deepspeed"),),
        edits=(Insert(site.module, site.node, lines, after=True),) if lines else (),
    )  # fmt: skip
    for held in site.left:
        yield Decision(
            "MG101", Kind.TODO, site.module, site.node, told("pass {target} to the {held} too: it holds the wrapped model", held=held, target=site.target),
            "no name leads to it here",
        )  # fmt: skip


def replicas(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Take DataParallel off the same model, and say once what a run of one process loses."""
    seen: set[ast.AST] = set()
    told_of = False
    for event in training.events(Happening.WRAP):
        if event.node in seen or not any(
            isinstance(one, Obj) and role_of(one) is Role.REPLICAS for one in each(event["wrapper"])
        ):
            continue
        if not training.is_model(event["module"]):
            continue
        seen.add(event.node)
        model = wrapped_model(event.node)
        if model is not None:
            yield Decision(
                "MG102", Kind.CONVERTED, event.module, event.node, "DataParallel removed", "the engine's processes drive one device each",
                edits=_plain(training, event.module, event.node, model),
            )  # fmt: skip
            if not told_of and not _has_one_device(event):
                told_of = True
                yield Decision(
                    "MG102", Kind.KEPT, event.module, event.node, "One process now trains on one GPU; DataParallel used several.",
                    "start a process for each GPU", differs=True,
                )  # fmt: skip


def _has_one_device(wrap: Event) -> bool:
    """Whether DataParallel was given a single device."""
    return any(
        (isinstance(one, Tup) and len(one.items) == 1)
        or (isinstance(one, Obj) and one.kind is Of.LIST and not one.has(REST) and len(items_of(one)) == 1)
        for one in each(wrap.what.get("arg_device_ids", NONE))
    )


def others(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Say that wraps stay of models that nothing trains."""
    for node, event in {event.node: event for event in training.left_wrapped}.items():
        yield Decision(
            "MG105", Kind.KEPT, event.module, node, "this model stays in DistributedDataParallel: nothing trains it",
            "an engine needs an optimizer",
        )  # fmt: skip


def repeated(training: Training, facts: Facts) -> Iterator[Decision]:
    """Say what stays of one training when a loop begins the next."""
    process = itertools.takewhile(lambda block: block.kind is not BlockKind.SPAWNED, facts.site.block.around())
    loop = next((block for block in process if block.kind is BlockKind.LOOP), None)
    if loop is None or loop.node is None or loop.module is None:
        return
    yield Decision(
        "MG712", Kind.KEPT, loop.module, loop.node, told("each turn makes an engine; {target}.destroy() after it frees memory", target=facts.site.target),
        "the hooks of ZeRO hold the model and the optimizer of the turn before",
    )  # fmt: skip
    for event in training.events(Happening.GROUP_GONE):
        if any(block is loop for block in event.block.around()):
            yield Decision(
                "MG712", Kind.TODO, event.module, event.node, "keep the process group until the last turn: DeepSpeed's groups need it",
                "the next deepspeed.initialize finds the groups of the one before",
            )  # fmt: skip


def _does_nothing(training: Training, test: ast.expr) -> bool:
    """Whether nothing happens in a test that matters to the training."""
    inside = set(ast.walk(test))
    return not any(
        event.node in inside or any(block.node in inside for block in event.block.around())
        for event in training.analysis.events
    )


def _is_elif(step: Step) -> bool:
    """Whether the statement around is an ``elif``."""
    outer = step.up
    return (
        outer is not None
        and outer.up is not None
        and isinstance(outer.up.node, ast.If)
        and outer.up.node.orelse == [outer.node]
    )


def _goes(training: Training, statement: ast.stmt, name: str) -> bool:
    """Whether a statement does no more than to bind a wrapped model to the name that it has already."""
    if not isinstance(statement, ast.Assign) or [ast.unparse(one) for one in statement.targets] != [name]:
        return False
    model = wrapped_model(statement.value)
    known = {
        event.node
        for event in training.events(Happening.WRAP)
        if event in training.wraps
        or any(isinstance(one, Obj) and role_of(one) is Role.REPLICAS for one in each(event["wrapper"]))
    }
    return statement.value in known and model is not None and ast.unparse(model) == name


def _at_calls(training: Training, wrapped: Event, model: ast.expr, taken_off: set[ast.Call]) -> Decision | None:
    """The calls of a function that only wraps what it is given are taken off: other scripts go on calling it."""
    function = wrapped.module.step(wrapped.node).function
    edits: list[Edit] = []
    first: tuple[Module, ast.Call] | None = None
    for event in training.wraps:
        if event.node is not wrapped.node:
            continue
        call = (
            next((block for block in event.block.around() if is_call_of(block, function)), None) if function else None
        )
        if (
            call is None
            or call.module is None
            or not isinstance(call.node, ast.Call)
            or not isinstance(model, ast.Name)
        ):
            return None
        label = call.label
        given = argument(label, call.node, model.id) if isinstance(label, Obj) else None
        results = () if call.result is None else each(call.result)
        if (
            given is None
            or any(one.kind not in {Happening.WRAP, Happening.FILE} for one in call.events())
            or not all(training.is_wrapper(one) or one in training.models for one in results)
        ):
            return None
        first = first or (call.module, call.node)
        if call.node not in taken_off:
            taken_off.add(call.node)
            edits += _plain(training, call.module, call.node, given)
    if first is None:
        return None
    return Decision(
        "MG101", Kind.CONVERTED, *first, "the call that wraps the model is taken off", "other scripts wrap with it too", edits=tuple(edits)
    )  # fmt: skip


def _plain(training: Training, module: Module, node: ast.AST, model: ast.expr) -> tuple[Edit, ...]:
    """The model in the wrapper's place; nothing where that would assign a name to itself."""
    step = module.step(node)
    statement = step.node
    chosen = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(chosen, ast.IfExp) and node in (chosen.body, chosen.orelse) and _does_nothing(training, chosen.test):
        other = chosen.orelse if chosen.body is node else chosen.body
        if any(one.node is other for one in training.wraps):
            other = wrapped_model(other) or other
        if ast.unparse(other) == ast.unparse(model):  # both arms give the model
            assert isinstance(statement, ast.Assign)
            if [ast.unparse(one) for one in statement.targets] == [ast.unparse(model)]:
                return (Remove(module, statement),)
            return (Replace(module, chosen, (model,)),)
    if isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1:
        if ast.unparse(statement.targets[0]) == ast.unparse(model):
            outer = step.up.node if step.up is not None else None
            if (
                isinstance(outer, ast.If)
                and not (
                    isinstance(training.site, Site) and training.site.node in outer.body
                )  # behind which the engine comes
                and not _is_elif(step)
                and _does_nothing(training, outer.test)
            ):
                if all(
                    one is statement or _goes(training, one, ast.unparse(model)) for one in (*outer.body, *outer.orelse)
                ):
                    return (Remove(module, outer),)
            return (Remove(module, statement),)
    return (Replace(module, node, (model,)),)
