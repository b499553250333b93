"""Checkpoints stay files: the optimizer gives and takes its whole state, gathered where all ranks are."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import dividing, loops_around
from dsmigrate.codemod.analysis.classes import looked_up
from dsmigrate.codemod.analysis.conditions import TRUE, either
from dsmigrate.codemod.analysis.directories import Directories
from dsmigrate.codemod.analysis.events import Event, Happening, groups_read
from dsmigrate.codemod.analysis.meeting import (
    Meeting,
    is_apart,
    is_at_each_step,
    is_group_gone,
    is_last,
    is_stopping,
    meetings,
    parting,
)
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Expr, Obj, Tensor, Value, each
from dsmigrate.codemod.analysis.values import Kind as ObjKind
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
from dsmigrate.codemod.idioms.teaching import taught
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, Replace, Template
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG621",
        "A checkpoint stays the file that it was",
        "What the script saves at a path stays a torch.save file with the script's own keys, the optimizer's state in torch's "
        "format; gather_checkpoint brings it together where all ranks are, before the guarded save.",
        "ZeRO spreads the optimizer's state (at stage 3 the weights too) over the ranks. Old checkpoints resume in the "
        "converted script, new ones in the original, and every other reader goes on working.",
        "deepspeed/utils/tensor_fragment.py, safe_get_full_optimizer_state",
        Kind.CONVERTED,
    ),
    Idea(
        "MG622",
        "A checkpoint is loaded as it was",
        "optimizer.load_state_dict takes a whole state, and each rank keeps its part; loaded weights reach the master copies.",
        "keep_torch_checkpoints teaches the script's optimizer and the engine's module.",
        "deepspeed/utils/tensor_fragment.py, safe_set_full_optimizer_state",
        Kind.CONVERTED,
    ),
    Idea(
        "MG626",
        "An unread function is given the model and the optimizer",
        "It may save or load their state: where it is called, gather_checkpoint has to come before it.",
        "ZeRO spreads the optimizer's state over the ranks, and all of them have to be there to gather it.",
        "deepspeed/utils/tensor_fragment.py",
        Kind.TODO,
    ),
    Idea(
        "MG627",
        "Hyperparameters out of the optimizer's state",
        "optimizer.state_dict()['param_groups'] becomes optimizer.param_groups.",
        "state_dict() would gather the states of all ranks for it.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.CONVERTED,
    ),
    Idea(
        "MG631",
        "The optimizer itself goes into a file",
        "torch.save pickles the optimizer, or an object that holds it, instead of its state_dict().",
        "At ZeRO 1-3 a pickled optimizer has flat pieces in place of the model's parameters; at ZeRO 0 its parameters are no longer "
        "those of the model in the file. The engine, in an object, cannot be pickled at all.",
        "run on two processes with DeepSpeed 0.19.8, ZeRO 0 and 2",
        Kind.TODO,
    ),
    Idea(
        "MG633",
        "A checkpoint of a rank that stops alone",
        "A checkpoint is saved in an except around the training, in a signal handler or by atexit, or where no place is left that "
        "all ranks reach before it.",
        "The state is spread over the ranks, and all of them have to be there to gather it. In a handler set a flag only; behind "
        "each step let all ranks agree on it (all_reduce) and save together.",
        "deepspeed/utils/tensor_fragment.py",
        Kind.TODO,
    ),
    Idea(
        "MG635",
        "Each rank saves by a metric of its own",
        "`if acc > best: torch.save(…)` on all ranks, where acc is of this rank's part of the data.",
        "Every rank whose own metric is better writes the file, and the last one wins, as under DDP; all gather before. Reduce the "
        "metric over the ranks (all_reduce), and the best checkpoint is that of the whole data.",
        "run on two processes",
        Kind.KEPT,
    ),
)
_WHOLE_SAVES = frozenset({"save_pretrained", "push_to_hub"})


def files(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about saved and loaded states of the optimizer, and of weights."""
    states = [event for event in _states(training, facts) if not _is_of_groups(event)]
    yield from (_groups(event) for event in _states(training, facts) if _is_of_groups(event))
    loads = [event for event in training.events(Happening.RESTORE) if training.is_optimizer(event["of"])]
    handed = [event for event in training.events(Happening.OPAQUE) if _is_handed(training, event)]
    loads += [event for event in handed if training.is_before(event)]
    weights = [
        one
        for one in training.events(Happening.RESTORE)
        if training.is_model(one["of"]) and not training.is_before(one)
    ]
    if states or loads or weights or handed:
        yield from taught(training, facts, loads)
    in_directories = facts.directories if isinstance(facts.directories, Directories) else None
    if in_directories is not None:  # the engine saves these itself
        states = [event for event in states if event.node not in in_directories.states]
    gone = [event for event in states if is_group_gone(training, event)]
    for event in gone:
        yield Decision(
            "MG633", Kind.TODO, event.module, event.node, "save before destroy_process_group(): the ranks gather the state through the group",
            "ZeRO spreads it over the ranks", least=facts.least_apart,
        )  # fmt: skip
    states = [event for event in states if event not in gone]
    states += _unread(training, handed, states)
    yield from _inside_loop(training, facts, handed)
    if in_directories is None and not any(
        event.kind is Happening.OPAQUE
        or parting(training, event) is not None
        or is_apart(training, event)
        or is_stopping(training, event)
        for event in states
    ):
        return
    places: dict[tuple[ast.AST, str], list[tuple[Event, Meeting]]] = {}
    for event, found in meetings(training, states).items():
        if found is None:
            yield Decision(
                "MG633", Kind.TODO, event.module, event.node, "save where all ranks are: the others may not be here to gather the state",
                "ZeRO spreads it over the ranks", least=facts.least_apart,
            )  # fmt: skip
        elif not found.test and is_at_each_step(training, event, found):
            yield Decision(
                "MG633", Kind.TODO, event.module, event.node, "let all ranks decide alike when to save: gathering at every step takes too long",
                "all ranks have to come where the state is gathered", least=facts.least_apart,
            )  # fmt: skip
        else:
            places.setdefault((found.node, found.engine), []).append((event, found))
    for pairs in places.values():
        yield from _gathered(training, facts, pairs)


def _is_handed(training: Training, event: Event) -> bool:
    """Whether an unread function is given both the model and the optimizer, and may save or load them."""
    things = [value for name, value in event.what.items() if name.startswith("thing")]
    return any(map(training.is_optimizer, things)) and any(
        training.is_model(one) and not isinstance(one, Tensor) for one in things
    )


def _unread(training: Training, handed: list[Event], states: list[Event]) -> list[Event]:
    return [
        event for event in handed
        if event not in states and "read" not in event.what and not training.is_before(event) and not _steps_beside(training, event)
        if not _makes_object(event)
    ]  # fmt: skip


def _makes_object(event: Event) -> bool:
    """Whether an unread call makes an object, by the name of its class: a method of that saves, not the making."""
    name = ast.unparse(event.node.func).rpartition(".")[2] if isinstance(event.node, ast.Call) else ""
    return name.lstrip("_")[:1].isupper()


def _steps_beside(training: Training, event: Event) -> bool:
    """Whether something happens in each turn of the loop that a step is in: too often to gather for it."""
    loop = next(iter(loops_around(event)), None)
    if loop is None or event.condition is not loop.condition:
        return False
    return any(loops_around(step)[:1] == [loop] for step in training.steps)


def _inside_loop(training: Training, facts: Facts, handed: list[Event]) -> Iterator[Decision]:
    for event in {event.node: event for event in handed}.values():
        if "read" not in event.what and not training.is_before(event) and _steps_beside(training, event):
            yield Decision(
                "MG626", Kind.TODO, event.module, event.node, "if this saves the optimizer, call ds_compat.gather_checkpoint(engine, keep=True) before",
                "ZeRO spreads its state over the ranks", least=facts.least_apart,
            )  # fmt: skip


def pickled(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Mark files of the optimizer itself, and of objects that hold it."""
    for event in {event.node: event for event in training.events(Happening.SAVE)}.values():
        if not training.is_before(event) and any(
            _holds_optimizer(training, one) for one in training.analysis.run.things_in(event["content"])
        ):
            yield Decision(
                "MG631", Kind.TODO, event.module, event.node, "save optimizer.state_dict(), not the optimizer: the file is of no use for a resume",
                "its parameters are not those of the model in the file",
            )  # fmt: skip


def _holds_optimizer(training: Training, value: Value) -> bool:
    if training.is_optimizer(value):
        return True
    if not isinstance(value, Obj) or value.kind is not ObjKind.INSTANCE or value.cls is None:
        return False
    if any(looked_up(value.cls, name) is not None for name in ("__getstate__", "__reduce__", "__reduce_ex__")):
        return False
    return any(training.is_optimizer(one) for held in value.own.values() for one in each(held))


def _states(training: Training, facts: Facts) -> list[Event]:
    """The events at which a state is asked for that is not whole on each rank."""
    found = [event for event in training.events(Happening.STATE) if training.is_optimizer(event["of"])]
    if facts.options.zero_stage == 3:
        found += [
            event
            for event in training.events(Happening.STATE, Happening.FORWARD)
            if training.is_model(of := event["of"] if event.kind is Happening.STATE else event["model"])
            if not training.is_before(event) and not training.is_copy(of)
            if event.kind is Happening.STATE or constant(event["method"]) in _WHOLE_SAVES
        ]
    found += [
        event
        for event in training.events(Happening.OPAQUE)
        if dividing(event) is not None and _is_given_optimizer(training, event) and not _makes_object(event)
    ]
    return sorted((event for event in found if not _is_early(training, event)), key=lambda event: event.number)


def _is_early(training: Training, event: Event) -> bool:
    return training.is_before(event) and event.kind is not Happening.STATE


def _is_given_optimizer(training: Training, event: Event) -> bool:
    """Whether an unread call is given the optimizer, or is one of an object that was."""
    run = training.analysis.run
    given = [value for name, value in event.what.items() if name.startswith("thing")]
    held = [one for value in given for one in each(value)]
    held += [inner for one in held if isinstance(one, Expr) for inner in run.held.get(one, ())]
    return any(training.is_optimizer(one) for one in held)


def _conjuncts(test: str) -> frozenset[str]:
    """The parts of a test that all have to hold: one of fewer of them holds wherever one of more does."""
    node = ast.parse(test, mode="eval").body
    is_and = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)
    return frozenset(map(ast.unparse, node.values if is_and else [node]))  # type: ignore[attr-defined]


def _either_way(tests: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Tests with their parts, where two that differ in a part and its opposite have become what they share."""
    for one, other in itertools.combinations(tests, 2):
        shared, apart = tests[one] & tests[other], sorted(tests[one] ^ tests[other], key=len)
        if shared and len(apart) == 2 and apart[1] == f"not {apart[0]}":
            node = ast.parse(one, mode="eval").body
            kept = [part for part in getattr(node, "values", ()) if ast.unparse(part) in shared]
            text = ast.unparse(ast.BoolOp(ast.And(), kept) if len(kept) > 1 else kept[0])
            rest = {test: parts for test, parts in tests.items() if test not in {one, other}}
            return _either_way({**rest, text: shared})
    return tests


def _gathered(training: Training, facts: Facts, pairs: list[tuple[Event, Meeting]]) -> Iterator[Decision]:
    """One line for all saves behind one place."""
    event, place = pairs[0]
    keeps = {found.keep for _, found in pairs}
    tests = {found.test for _, found in pairs}
    keep = next(iter(keeps)) if len(keeps) == 1 else "True"
    parts = _either_way({one: _conjuncts(one) for one in sorted(tests) if one})
    wide = sorted(one for one in parts if not any(other < parts[one] for other in parts.values()))
    always = "" in tests or either(*(found.when for _, found in pairs)) is TRUE
    test = "" if always else " or ".join(wide if len(wide) == 1 else map("({})".format, wide))
    has_optimizer = any(_is_of_optimizer(training, one) for one, _ in pairs)
    more = (f", keep={keep}" if keep else "") + ("" if has_optimizer else ", optimizer=False")
    line = f"ds_compat.gather_checkpoint({place.engine}{more})"
    code: tuple[Template, ...] = ((line,),) if not test else ((f"if {test}:",), (f"    {line}",))
    yield Decision(
        "MG621", Kind.CONVERTED, place.module, place.node, told("{line} before the save", line=line), "all ranks bring their part",
        edits=(Insert(place.module, place.node, code),), parts=frozenset({"gather_checkpoint"}), lines=(0, 0), least=facts.least_apart,
    )  # fmt: skip
    if any(is_last(training, one) for one, _ in pairs):
        yield Decision(
            "MG633", Kind.KEPT, event.module, event.node, "a rank that fails comes here alone and waits for the others, which may not come",
            "all ranks gather the state", differs=True, least=facts.least_apart,
        )  # fmt: skip
    if any(found.by_data for _, found in pairs):
        yield Decision(
            "MG635", Kind.KEPT, event.module, event.node, "ranks save here by a value of their own: all_reduce it, or the last one wins",
            "as under DDP",
        )  # fmt: skip


def _is_of_optimizer(training: Training, event: Event) -> bool:
    return event.kind is Happening.OPAQUE or (event.kind is Happening.STATE and training.is_optimizer(event["of"]))


def _is_of_groups(event: Event) -> bool:
    """``optimizer.state_dict()["param_groups"]``."""
    return groups_read(event) is not None


def _groups(event: Event) -> Decision:
    found = groups_read(event)
    assert found is not None
    assert isinstance(event.node, ast.Call)
    assert isinstance(event.node.func, ast.Attribute)
    return Decision(
        "MG627", Kind.CONVERTED, event.module, found, 'state_dict()["param_groups"] → param_groups', "nothing has to be gathered for it",
        edits=(Replace(event.module, found, (event.node.func.value, ".param_groups")),),
    )  # fmt: skip
