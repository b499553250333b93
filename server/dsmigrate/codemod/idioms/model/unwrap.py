"""What knows of the wrapper: ``.module`` before the engine exists, tests of its class, choices by whether it is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.summaries.registry import Role, canonical, role_of_class
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant, is_statement, library_name
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Import, Replace, ReplaceStatement

IDEAS = (
    Idea(
        "MG501",
        ".module before the engine exists",
        "The model is not wrapped yet at this point of the converted script; .module goes.",
        "The engine is made behind the optimizer; until then the name holds the model itself.",
        "deepspeed/__init__.py, initialize",
        Kind.CONVERTED,
    ),
    Idea(
        "MG502",
        "isinstance(model, DistributedDataParallel) asks for the engine",
        "Unwrap helpers that test for DDP test for deepspeed.DeepSpeedEngine.",
        "An engine is no DistributedDataParallel; a helper that asks for that would hand the engine on.",
        "deepspeed/__init__.py, DeepSpeedEngine",
        Kind.CONVERTED,
    ),
    Idea(
        "MG503",
        "Unwrapping that depended on a flag",
        "`model.module if distributed else model` becomes `model.module`: the engine is there on both branches.",
        "In the other branch the script used the plain model, which is engine.module now.",
        "deepspeed/runtime/engine.py, module",
        Kind.CONVERTED,
    ),
    Idea(
        "MG505",
        "Modes of the wrapper",
        "engine.train() and engine.eval() return nothing, engine.training is always True.",
        "What they give is taken from engine.module.",
        "deepspeed/runtime/engine.py, train, eval",
        Kind.CONVERTED,
    ),
)


def unwrap(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The decisions about ``.module``."""
    places: dict[ast.AST, list[Event]] = {}
    for event in training.events(Happening.ACCESS):
        if constant(event["name"]) == "module" and training.is_wrapper(event["of"]):
            places.setdefault(event.node, []).append(event)
    for node, events in places.items():
        event = events[0]
        if not isinstance(node, ast.Attribute):
            continue
        if all(training.is_before(one) for one in events):
            yield Decision(
                "MG501", Kind.CONVERTED, event.module, node, f"{event.module.text(node)} → {event.module.text(node.value)}",
                "the engine is not there yet", edits=(Replace(event.module, node, (node.value,)),),
            )  # fmt: skip
            continue
        if not any(training.is_before(one) for one in events):
            yield from _chosen(training, event, node)


def _asks_for_wrapper(training: Training, test: ast.expr) -> bool:
    """Whether a test looks at the model itself, and so holds for the engine too where it should."""
    inside = set(ast.walk(test))
    return any(
        event.node in inside or any(block.node in inside for block in event.block.around())
        for event in training.events(Happening.KIND_TEST)
    )


def _chosen(training: Training, event: Event, node: ast.Attribute) -> Iterator[Decision]:
    """``model.module if distributed else model``, as an expression or as a statement."""
    module = event.module
    step = module.step(node)
    plain = ast.dump(node.value)
    for sub in ast.walk(step.node):
        if isinstance(sub, ast.IfExp) and not _asks_for_wrapper(training, sub.test) and {ast.dump(sub.body), ast.dump(sub.orelse)} == {ast.dump(node), plain}:
            yield Decision(
                "MG503", Kind.CONVERTED, module, sub, f"{module.text(sub)} → {module.text(node)}", "the engine is always there",
                edits=(Replace(module, sub, (sub.body if ast.dump(sub.body) == ast.dump(node) else sub.orelse,)),),
            )  # fmt: skip
            return
    outer = step.up.node if step.up is not None else None
    if isinstance(outer, ast.If) and len(outer.body) == len(outer.orelse) == 1 and not _asks_for_wrapper(training, outer.test):
        one, other = outer.body[0], outer.orelse[0]
        if isinstance(one, ast.Assign) and isinstance(other, ast.Assign) and ast.dump(one.targets[0]) == ast.dump(other.targets[0]):
            if {ast.dump(one.value), ast.dump(other.value)} == {ast.dump(node), plain}:
                kept = one if ast.dump(one.value) == ast.dump(node) else other
                yield Decision(
                    "MG503", Kind.CONVERTED, module, outer, f"{module.text(kept)}, whatever the flag says", "the engine is always there",
                    edits=(ReplaceStatement(module, outer, ((module.text(kept),),)),),
                )  # fmt: skip


def kind_tests(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The decisions about ``isinstance(model, DistributedDataParallel)``."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.KIND_TEST):
        node = event.node
        if node in seen or not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        seen.add(node)
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple | ast.List) else [node.args[1]]
        for kind in kinds:
            name = library_name(kind, event.names)
            if name is None or role_of_class(canonical(name)) is not Role.WRAPPER:
                continue
            yield Decision(
                "MG502", Kind.CONVERTED, event.module, node, f"{event.module.text(kind)} → deepspeed.DeepSpeedEngine",
                "the engine takes the wrapper's place",
                edits=(Replace(event.module, kind, ("deepspeed.DeepSpeedEngine",)),), imports=(Import(event.module, "deepspeed"),),
            )  # fmt: skip


def modes(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about what ``train()``, ``eval()`` and ``training`` give."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.MODE, Happening.ACCESS):
        node = event.node
        if node in seen or not training.is_wrapper(event["of"]) or training.is_before(event):
            continue
        seen.add(node)
        is_training = event.kind is Happening.ACCESS and constant(event["name"]) == "training"
        taken = event.kind is Happening.MODE and isinstance(node, ast.Call) and not is_statement(event)
        holder = node.value if isinstance(node, ast.Attribute) else node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None  # fmt: skip
        if holder is None or not (is_training or taken):
            continue
        if is_training:
            yield Decision(
                "MG505", Kind.CONVERTED, event.module, node, "training → module.training", "engine.training is always True",
                edits=(Replace(event.module, node, (holder, ".module.training")),),
            )  # fmt: skip
        else:
            yield from _taken_mode(event, holder, facts)


def _taken_mode(event: Event, holder: ast.expr, facts: Facts) -> Iterator[Decision]:
    """``model = model.train()``: the call stays, what it gave is the model."""
    del facts
    module, node = event.module, event.node
    assert isinstance(node, ast.Call)
    statement = module.step(node).node
    if isinstance(statement, ast.Assign) and statement.value is node and ast.dump(statement.targets[0]).replace("Store()", "Load()") == ast.dump(holder):
        yield Decision(
            "MG505", Kind.CONVERTED, module, node, f"{module.text(statement)} → {module.text(node)}", "engine.train() returns nothing",
            edits=(ReplaceStatement(module, statement, ((node,),)),),
        )  # fmt: skip
    else:
        yield Decision("MG505", Kind.TODO, module, node, f"{module.text(node)} returns nothing for the engine: use {module.text(holder)}")
