"""ZeroRedundancyOptimizer becomes the optimizer that it shards; sharding is the engine's business."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import library_name
from dsmigrate.codemod.analysis.classes import bases_of
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Const, Kind, Obj, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant, is_statement
from dsmigrate.codemod.model import Idea
from dsmigrate.codemod.model import Kind as DecisionKind
from dsmigrate.codemod.program.edits import Edit, Remove, RemoveArgument, Replace
from dsmigrate.codemod.program.module import Module, Step
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG610",
        "ZeroRedundancyOptimizer becomes the optimizer it shards",
        "The class it was given is made plainly, with the same arguments, and consolidate_state_dict goes.",
        "ZeroRedundancyOptimizer gives each rank some of the parameters to update, and broadcasts them after the step; ZeRO shards the "
        "same state inside of the engine. Both at once would shard what is sharded. Trained beside the original on two processes the "
        "losses are the same at ZeRO 0 to 3. A process group of its own, overlap_with_ddp (which does not update in the first steps), "
        "and subclasses are refused with MG903.",
        "torch/distributed/optim/zero_redundancy_optimizer.py; tests/e2e, zero_redundancy",
        DecisionKind.CONVERTED,
    ),
)
_OWN = ("params", "optimizer_class", "process_group", "parameters_as_bucket_view", "overlap_with_ddp")
_WORLD = frozenset({"torch.distributed.group.WORLD", "torch.distributed.GroupMember.WORLD"})
_NAME = "ZeroRedundancyOptimizer"


def redundancy(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about each place that makes one, and about what only it has."""
    makers = [
        event
        for event in training.events(Happening.MADE)
        if any(_is_one(one) for one in each(event["what"])) and training.is_optimizer(event["what"])
    ]
    for event in {event.node: event for event in makers}.values():
        yield from _plain(event, facts)
    if makers:
        yield from _consolidations(training)


def _is_one(value: Value) -> bool:
    return any(name.endswith(f".{_NAME}") for name in bases_of(value))


def _plain(event: Event, facts: Facts) -> Iterator[Decision]:
    """The call without the sharding's own arguments, of the class itself."""
    module, node = event.module, event.node
    what = next(one for one in each(event["what"]) if _is_one(one))
    if not isinstance(what, Obj) or what.kind is not Kind.LIBRARY or what.cls is not None:
        yield _refused(event, "has a subclass: what that changes cannot be taken over")
        return
    named = library_name(node.func, event.names) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or named is None or not named.endswith(_NAME):
        yield _refused(event, "is called by another name: make the optimizer where its class can be seen")
        return
    given: dict[str, ast.expr] = {}
    for name, arg in zip(_OWN, node.args, strict=False):
        if isinstance(arg, ast.Starred):
            break
        given[name] = arg
    given.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg in _OWN})
    made = given.get("optimizer_class")
    if made is None:
        yield _refused(event, "is given no optimizer_class that can be seen")
        return
    overlap, group = given.get("overlap_with_ddp"), given.get("process_group")
    if overlap is not None and not _is(event, overlap, "overlap_with_ddp", Const(value=False)):
        yield _refused(event, "steps inside of DDP's communication (overlap_with_ddp)")
        return
    if (
        group is not None
        and not _is(event, group, "process_group", NONE)
        and library_name(group, event.names) not in _WORLD
    ):
        yield _refused(event, "shards over a process group of its own")
        return
    text = module.text(made)
    if not isinstance(made, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        text = f"({text})"
    edits: list[Edit] = [Replace(module, node.func, (text,))]
    edits += [RemoveArgument(module, arg) for name, arg in given.items() if name != "params"]
    yield Decision(
        "MG610", DecisionKind.CONVERTED, module, node, told("{name} → {code}, made plainly", name=_NAME, code=module.text(made)), "ZeRO shards the same state inside of the engine",
        edits=tuple(edits),
    )  # fmt: skip
    if any(keyword.arg is None and not _is_clean(event, keyword.value) for keyword in node.keywords):
        spread = next(module.text(keyword.value) for keyword in node.keywords if keyword.arg is None)
        yield Decision(
            "MG610", DecisionKind.TODO, module, node, told("take {names} out of {spread}, if they are in it", names=", ".join(_OWN[2:]), spread=spread),
            "no other class takes them",
        )  # fmt: skip
    if facts.options.zero_stage == 0:
        yield Decision(
            "MG610", DecisionKind.KEPT, module, node, "at ZeRO 0 every rank holds the whole optimizer state, which was sharded before",
            "stage 1 shards it", differs=True,
        )  # fmt: skip


def _refused(event: Event, message: str) -> Decision:
    return Decision("MG903", DecisionKind.REFUSED, event.module, event.node, f"{_NAME} {message}")


def _is(event: Event, written: ast.expr, name: str, wanted: Const) -> bool:
    """Whether an argument is a constant, as it is written or as it comes out."""
    value = event.what.get(f"arg_{name}")
    if value is not None:
        return all(one == wanted for one in each(value))
    return isinstance(written, ast.Constant) and written.value is wanted.value


def _is_clean(event: Event, spread: ast.expr) -> bool:
    """Whether a dictionary that is handed over with ``**`` is known, and has nothing of the sharding's own."""
    if not isinstance(spread, ast.Name):
        return isinstance(spread, ast.Call | ast.Dict) and not any(
            (isinstance(one, ast.keyword) and (one.arg is None or one.arg in _OWN)) or (isinstance(one, ast.Constant) and one.value in _OWN) for one in ast.walk(spread)
        )  # fmt: skip
    value = next((scope[spread.id] for scope in event.names if spread.id in scope), None)
    found = list(each(value)) if value is not None else []
    return bool(found) and all(
        isinstance(one, Obj)
        and one.kind is Kind.DICT
        and not one.data.get("open")
        and not any(name in one.own for name in _OWN)
        for one in found
    )


# -- what only it has --------------------------------------------------------------------------------------------------


def _consolidations(training: Training) -> Iterator[Decision]:
    seen: set[ast.AST] = set()
    for event in training.events(Happening.HOOK, Happening.ACCESS):
        if event.node in seen or not training.is_optimizer(event["of"]):
            continue
        module, node, name = event.module, event.node, constant(event["name"])
        if event.kind is Happening.ACCESS and name == "optim":
            seen.add(node)
            yield Decision(
                "MG610",
                DecisionKind.TODO,
                module,
                node,
                told("{code}: the optimizer has no other one inside any more", code=_text(module, node)),
            )
        elif event.kind is Happening.HOOK and name == "consolidate_state_dict":
            seen.add(node)
            if not is_statement(event):
                yield Decision(
                    "MG610", DecisionKind.CONVERTED, module, node, "consolidate_state_dict goes", "a plain optimizer has no such method",
                    edits=(Replace(module, node, ("None",)),),
                )  # fmt: skip
                continue
            step = module.step(node)
            outer = _guard(event, step)
            yield Decision(
                "MG610", DecisionKind.CONVERTED, module, node, "consolidate_state_dict goes: the state is gathered before the save",
                "a plain optimizer has no such method", edits=(Remove(module, step.node),),
            )  # fmt: skip
            if outer is not None:
                yield Decision(
                    "MG610", DecisionKind.TODO, module, outer, told("the optimizer is no {name} any more: this test fails now", name=_NAME),
                )  # fmt: skip


def _guard(event: Event, step: Step) -> ast.If | None:
    """The ``if`` around that asks whether it is one, and holds more than the call."""
    outer = step.up.node if step.up is not None else None
    if not isinstance(outer, ast.If) or (len(outer.body) == 1 and not outer.orelse):
        return None
    asks = any(
        (isinstance(one, ast.Constant) and one.value == "consolidate_state_dict")
        or (isinstance(one, ast.Name | ast.Attribute) and (library_name(one, event.names) or "").endswith(_NAME))
        for one in ast.walk(outer.test)
    )
    return outer if asks else None


def _text(module: Module, node: ast.AST) -> str:
    return module.text(node) if isinstance(node, ast.expr) else ""
