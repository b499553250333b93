"""What ZeRO 1-3 do not see, because the optimizer steps flat pieces that were made once: groups, switches, hooks, rates."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dsmigrate.codemod.analysis.analysis import dividing, loops_around, modules_of, under
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.holdings import outsiders
from dsmigrate.codemod.analysis.lengths import differs, same_for_all
from dsmigrate.codemod.analysis.optimizers import makings
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, NONE, Const, Obj, Tensor, TensorKind, Value, each
from dsmigrate.codemod.analysis.values import Kind as Of
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.clips import clips_of
from dsmigrate.codemod.idioms.facts import Facts, by_place, constant
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG520",
        "Something runs within the optimizer's step",
        "A hook of the optimizer's step, or a step that the script puts in its place, runs as under DDP at ZeRO 0 only.",
        "At ZeRO 1-3 the optimizer steps flat pieces, and the model's weights follow when its step is over: an average in a hook would "
        "take the weights of the step before. The config is given ZeRO stage 0.",
        "deepspeed/runtime/zero/stage_1_and_2.py, step; run on two processes, ZeRO 0 and 2",
        Kind.KEPT,
    ),
    Idea(
        "MG605",
        "Parameter groups added later",
        "add_param_group after deepspeed.initialize is not seen by ZeRO 1-3.",
        "The engine has partitioned the groups by then; at ZeRO 0 the script's own optimizer steps what it has.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.KEPT,
    ),
    Idea(
        "MG607",
        "Parameters are frozen or thawed during training",
        "requires_grad switched after deepspeed.initialize is not noticed at ZeRO 1-3.",
        "Thawed parameters would never train, frozen ones would keep moving by momentum and weight decay.",
        "measured against DeepSpeed 0.19.8",
        Kind.KEPT,
    ),
    Idea(
        "MG608",
        "The optimizer owns parameters outside the model",
        "ZeRO 1-3 partition the parameters of the engine's module and fail on others.",
        "deepspeed.initialize raises a KeyError on rank 0 and the other ranks wait.",
        "measured against DeepSpeed 0.19.8",
        Kind.KEPT,
    ),
    Idea(
        "MG613",
        "Some ranks change the learning rate alone",
        "A schedule that is stepped, or a group that is written to, under a rank guard or by the rank's own loss needs ZeRO 0.",
        "At ZeRO 1-3 every rank steps its own part of the parameters with its own learning rate: the parts would train at "
        "different rates. At ZeRO 0 each rank steps all parameters by itself, as it did under DDP.",
        "deepspeed/runtime/zero/stage_1_and_2.py, _optimizer_step",
        Kind.KEPT,
    ),
    Idea(
        "MG614",
        "Parameters in the order of a set",
        "The optimizer gets parameters by going over a set, whose order differs from process to process: the config gets ZeRO stage 0.",
        "Every rank of DDP steps its own optimizer, so that the order does not matter. ZeRO 1-3 lay the parameters of a group "
        "one after the other and give each rank a piece: ranks that disagree on the order step the wrong weights, without an "
        "error. Sort them (sorted(names), or go over model.named_parameters()) to use a stage.",
        "measured against DeepSpeed 0.19.8: another loss from the second step on at stages 1 and 2, the same as DDP's at 0",
        Kind.KEPT,
    ),
    Idea(
        "MG630",
        "Parameters are reached through the optimizer",
        'optimizer.param_groups[...]["params"] and optimizer.state are used while the training runs: the config gets ZeRO stage 0.',
        "At ZeRO 1-3 the groups of the script's optimizer hold one flat float32 piece per rank in place of the model's "
        "parameters, and its state belongs to these pieces: norms that are logged are those of a piece, averages and pruning "
        "miss the model, moments of a parameter are not found. Go over model.parameters() to use a stage.",
        "deepspeed/runtime/zero/stage_1_and_2.py: param_group['params'] = [self.single_partition_of_fp32_groups[i]]",
        Kind.KEPT,
    ),
)


def pieces(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that works at ZeRO 0 only."""
    for code, message, why, found in (
        ("MG605", "a group is added after the engine is made", "ZeRO 1-3 have partitioned the groups by then", _added(training)),
        ("MG607", "requires_grad changes after the engine is made", "ZeRO 1-3 do not notice it", _switched(training)),
        ("MG608", "the optimizer has parameters of another module too", "ZeRO 1-3 know those of the engine's module only", _foreign(training)),
        ("MG520", "this runs within the optimizer's step", "at ZeRO 1-3 the weights follow when the step is over", _hooked(training)),
        ("MG613", "each rank sets its own learning rate", "each rank steps a part of the parameters at ZeRO 1-3", _own_rates(training)),
        ("MG614", "parameters come in the order of a set, which differs by rank", "ZeRO 1-3 give each rank a piece: sort them to use a stage", _unordered(training)),
        ("MG630", "the optimizer is asked for parameters or their state", "at ZeRO 1-3 it has flat pieces of them", _reached(training, facts)),
    ):  # fmt: skip
        for event in (events[0] for events in by_place(found).values()):
            yield Decision(
                code, Kind.KEPT, event.module, event.node, told("{message}, which works at ZeRO 0", message=message), why, stage=0,
                otherwise=Decision(code, Kind.TODO, event.module, event.node, told("{message}: that needs ZeRO 0", message=message), why),
            )  # fmt: skip


def _behind(training: Training, events: Iterable[Event]) -> Iterator[Event]:
    yield from (event for event in events if not training.is_before(event))


def _added(training: Training) -> Iterator[Event]:
    for event in _behind(training, training.events(Happening.OPAQUE)):
        if event["function"] == Const("add_param_group") and training.is_optimizer(event.what.get("thing0", NONE)):
            yield event


def _switched(training: Training) -> Iterator[Event]:
    known = _still(training)
    for event in _behind(training, training.events(Happening.THAW)):
        of = event["of"]
        weights = [one for one in each(of) if isinstance(one, Tensor)]
        if any(one.kind is not TensorKind.PARAMETER or one.detached for one in weights):
            continue
        if (training.is_model(of) or training.holds_parameters(of)) and not (
            event["value"] == FALSE_VALUE and _owners(training, event) <= known
        ):
            yield event


def _owners(training: Training, event: Event) -> set[Value]:
    """The modules whose parameters are switched."""
    found = {one.of if isinstance(one, Tensor) else one for one in each(event["of"])} - {None}
    return set().union(*(modules_of(training.analysis.run, one) for one in found if one is not None))


def _still(training: Training) -> set[Value]:
    """The modules that are frozen when the engine is made."""
    found: set[Value] = set()
    for event in training.events(Happening.THAW):
        if training.is_before(event):
            inner = _owners(training, event)
            found = found | inner if event["value"] == FALSE_VALUE else found - inner
    return found


def _foreign(training: Training) -> Iterator[Event]:
    yield from (event for event in makings(training) if outsiders(training, event["params"]))


def _hooked(training: Training) -> Iterator[Event]:
    for event in training.events(Happening.HOOK):
        if training.is_optimizer(event["of"]) and constant(event["name"]) in {
            "register_step_pre_hook",
            "register_step_post_hook",
            "step",
        }:
            yield event


def _own_rates(training: Training) -> Iterator[Event]:
    same = same_for_all(training)
    for event in training.events(Happening.RATE_WRITE):
        if training.is_optimizer(event["of"]) and (differs(event["value"], same) or _is_alone(training, event, same)):
            yield event
    for event in training.events(Happening.SCHEDULE):
        schedules = [one for one in each(event["scheduler"]) if isinstance(one, Obj)]
        if not any(training.is_optimizer(one.own.get("optimizer", NONE)) for one in schedules):
            continue
        if _is_alone(training, event, same) or (
            differs(event["metric"], same) and any("Plateau" in one.made_by for one in schedules)
        ):
            yield event


def _is_alone(training: Training, event: Event, same: frozenset[Value]) -> bool:
    """Whether some ranks get there alone, by another test than one that their steps are under too (MG428)."""
    block = dividing(event, lambda test: differs(test, same))
    return block is not None and not any(under(step.block, block) for step in training.steps)


def _unordered(training: Training) -> Iterator[Event]:
    for event in makings(training):
        pending, seen = list(each(event["params"])), set()
        while pending:
            one = pending.pop()
            if not isinstance(one, Obj) or one in seen:
                continue
            seen.add(one)
            if one.kind is Of.SET or one.data.get("unordered"):
                yield event
                break
            if one.kind in {Of.LIST, Of.DICT, Of.ITERATOR}:
                pending += [inner for value in one.own.values() for inner in each(value)]


def _reached(training: Training, facts: Facts) -> Iterator[Event]:
    gone = {inner for one in clips_of(training, facts) for inner in ast.walk(one.event.node)}
    for event in _behind(training, training.events(Happening.ACCESS)):
        if (
            event.node in gone
            or not training.is_optimizer(event["of"])
            or constant(event["name"]) not in {"params", "state"}
        ):
            continue
        if not _only_zeroes(training, event):
            yield event


def _only_zeroes(training: Training, access: Event) -> bool:
    """Whether what is reached is zeroed or clipped, which the engine does, or looked at where gradients are."""
    kinds = (Happening.ZERO_GRAD, Happening.CLIP, Happening.GRADIENT_READ, Happening.GRADIENT_WRITE)
    inside = [
        event
        for event in training.events(*kinds)
        if event.number > access.number and any(_goes_over(block.node, access) for block in loops_around(event))
    ]
    return bool(inside)


def _goes_over(node: ast.AST | None, access: Event) -> bool:
    over = getattr(access.module.step(node).node, "iter", None) if node is not None and _has(access, node) else None
    return over is not None and access.node in set(ast.walk(over))


def _has(access: Event, node: ast.AST) -> bool:
    try:
        access.module.step(node)
    except KeyError:
        return False
    return True
