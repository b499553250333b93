"""Parameter groups of which nothing is trained: ZeRO 1 and 2 stop at them."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.conditions import FALSE, Condition, both
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, Obj, Tensor, TensorKind, Tup, Value, each
from dsmigrate.codemod.analysis.values import Kind as Is
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind

IDEAS = (
    Idea(
        "MG706",
        "A parameter group that is frozen as a whole",
        "ZeRO 1 and 2 fail on a group in which no parameter is trained: stage 0, or leave the group out of the optimizer.",
        "Frozen parameters beside trained ones are fine; of a group with none ZeRO makes an empty buffer: IndexError.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.TODO,
    ),
)


def groups(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each optimizer with such a group."""
    if facts.options.zero_stage in {0, 3}:
        return
    for event in training.events(Happening.MADE):
        if event["role"].value != "optimizer" or not training.is_optimizer(event["what"]):  # type: ignore[union-attr]
            continue
        for condition in filter(None, (_frozen(training, event, group) for group in _groups(event))):
            asked = Decision(
                "MG706", Kind.TODO, event.module, event.node, "leave the group that is frozen as a whole out of this optimizer",
                "ZeRO 1 and 2 fail on a group without a trained parameter",
            )  # fmt: skip
            yield Decision(
                "MG706", Kind.KEPT, event.module, event.node, "ZeRO 0: this optimizer has a group that is frozen as a whole; leave it out to partition",
                "ZeRO 1 and 2 fail on a group without a trained parameter", stage=0, otherwise=asked, when=condition,
            )  # fmt: skip
            break


def _groups(event: Event) -> Iterator[Value]:
    """The parameters of each group."""
    given = event["params"]
    items = (
        given.own.values()
        if isinstance(given, Obj) and given.kind is Is.LIST
        else given.items
        if isinstance(given, Tup)
        else ()
    )
    for item in items:
        if isinstance(item, Obj) and item.kind is Is.DICT and "params" in item.own:
            yield item.own["params"]


def _frozen(training: Training, event: Event, group: Value) -> Condition | None:
    """When all modules that a group takes its parameters of are frozen before; None where they are not."""
    owners = {
        one.of
        for one in training.analysis.run.things_in(group)
        if isinstance(one, Tensor) and one.kind is TensorKind.PARAMETER
    }
    found: list[Condition] = []
    for owner in owners:
        last = None
        for one in training.events(Happening.THAW):
            of = {inner.of if isinstance(inner, Tensor) else inner for inner in each(one["of"])}
            if one.number < event.number and of == {owner} and both(one.condition, event.condition) is not FALSE:
                last = one
        if last is None or last["value"] != FALSE_VALUE:
            return None
        found.append(last.condition)
    return both(*found) if found else None
