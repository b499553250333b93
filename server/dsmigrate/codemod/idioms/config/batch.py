"""The micro-batch: the batch size of the loader that feeds the training forward."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import loops_around, static_value
from dsmigrate.codemod.analysis.code import said
from dsmigrate.codemod.analysis.machine import sources
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Expr, Kind as ThingKind, Obj, Value, each, forwards_in
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind

KEY = "train_micro_batch_size_per_gpu"
IDEAS = (
    Idea(
        "MG701",
        "The micro-batch size follows the script",
        "train_micro_batch_size_per_gpu is the batch size of the training loader, from the same option or literal.",
        "The script keeps its own DataLoader and sampler; the number tells DeepSpeed the batch geometry, which it uses for "
        "throughput figures.",
        "deepspeed/runtime/config.py, _batch_assertion",
        Kind.CONVERTED,
    ),
    Idea(
        "MG702",
        "The micro-batch size is not readable from the script",
        "train_micro_batch_size_per_gpu is 1 in the config; put the real one there for correct throughput figures.",
        "With the script's own loader the number does not change the training.",
        "deepspeed/runtime/engine.py, tput_timer",
        Kind.KEPT,
    ),
)


def batch(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decision about the micro-batch size."""
    for loader in _loaders(training):
        size = loader.own.get("batch_size")
        if size is None or size == Const(None):
            continue
        code = said(size, facts.site.names)
        static = static_value(training.analysis, size)
        number = static if isinstance(static, int) and not isinstance(static, bool) and static > 0 else 1
        if code is None and number == 1:
            continue
        assert loader.module is not None
        dynamic = "" if isinstance(size, Const) or code is None else code
        yield Decision(
            "MG701", Kind.CONVERTED, loader.module, loader.node or facts.site.node, f"{KEY} = {code or number}",
            "the training loader's batch size", config={KEY: Setting(size, static=number, code=dynamic)}, lines=(0, 0),
        )  # fmt: skip
        return
    site = facts.site
    yield Decision(
        "MG702", Kind.KEPT, site.module, site.node, f"{KEY} is 1: put your batch size there", "no loader of the training forward is seen",
        config={KEY: Setting(None, static=1)}, lines=(0, 0),
    )  # fmt: skip


def _loaders(training: Training) -> Iterator[Obj]:
    """The loaders that the loops around the training's forwards go over, the innermost first."""
    nodes = {forward.node for event in training.backwards for forward in forwards_in(event["loss"])}
    for event in training.events(Happening.FORWARD):
        if event.node in nodes and training.is_model(event["model"]):
            yield from _around(event)


def _around(event: Event) -> Iterator[Obj]:
    for block in loops_around(event):
        if block.label is not None:
            yield from _in(block.label)


def _in(value: Value) -> Iterator[Obj]:
    for one in each(value):
        if isinstance(one, Obj):
            if role_of(one) is Role.LOADER:
                yield one
            elif one.kind is ThingKind.ITERATOR:
                for inner in sources(one):
                    yield from _in(inner)
        elif isinstance(one, Expr):
            continue
