"""Autocast regions stay, and ``torch_autocast`` makes the engine run the model in the same precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import nearest_common, regions_around
from dsmigrate.codemod.analysis.code import condition_said, holds_by_default, said
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, both, either, literals_of, negate, under
from dsmigrate.codemod.analysis.events import Block, Event, Happening
from dsmigrate.codemod.analysis.expressions import truth
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import TRUE_VALUE, UNBOUND, Choice, Const, Expr, Lib, Obj, Value, each, forwards_in
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Replace

AUTOCAST = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
IDEAS = (
    Idea(
        "MG301",
        "Autocast regions stay, and torch_autocast is switched on",
        "The engine runs the model under the same autocast; the region around the loss is kept.",
        "engine.forward switches a surrounding autocast region off unless the config has torch_autocast.",
        "deepspeed/runtime/torch_autocast.py, autocast_if_enabled",
        Kind.CONVERTED,
    ),
    Idea(
        "MG306",
        "Evaluation in a precision of its own uses the module",
        "Where the script evaluated the model outside any autocast region, or in another one than training did, engine.module is called.",
        "torch_autocast holds for every forward of the engine.",
        "deepspeed/runtime/engine.py, forward",
        Kind.CONVERTED,
    ),
    Idea(
        "MG307",
        "An autocast region that cannot be carried to the config",
        "Whether it is on, or its type, is known only inside the loop; or training forwards ran in several precisions.",
        "The engine reads torch_autocast when it is made.",
        "deepspeed/runtime/torch_autocast.py",
        Kind.TODO,
    ),
)
_DTYPES = {"torch.float16": "float16", "torch.half": "float16", "torch.bfloat16": "bfloat16", "torch.float32": "float32"}


@dataclass(frozen=True, slots=True)
class Precision:
    """In which precision a forward runs: under which condition autocast is on, with which type."""

    enabled: Condition
    dtype: Value | None


def regions(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about the precision of the training's forwards, and of the others."""
    nodes = {(forward.node, forward.context) for event in training.backwards for forward in forwards_in(event["loss"])}
    forwards = [event for event in training.events(Happening.FORWARD) if training.is_wrapper(event["model"])]
    trained = [event for event in forwards if (event.node, event.context) in nodes]
    found = {event: _precision(training, event) for event in forwards}
    precision = _together(trained, found)
    if precision is None or precision.enabled is FALSE:
        return
    first = next(event for event in trained if found[event].enabled is not FALSE)
    region = regions_around(first, AUTOCAST)[0]
    code = condition_said(precision.enabled, facts.site.names)
    dtype, dtype_code = _dtype(training, precision.dtype, facts)
    if not _agree(trained, found, precision) or code is None or dtype is None:
        yield Decision(
            "MG307", Kind.TODO, first.module, region.node or first.node, "set torch_autocast in ds_config.json as this region is",
            "when it is on, or its type, is not known where the engine is made",
        )  # fmt: skip
        return
    enabled = holds_by_default(training.analysis, precision.enabled)
    settings = {
        "torch_autocast.enabled": Setting(None, static=enabled is not False, code="" if code in {"True", "False"} else code),
        "torch_autocast.dtype": Setting(None, static=dtype, code=dtype_code),
        "torch_autocast.lower_precision_safe_modules": Setting(None, static=[]),
    }
    yield Decision(
        "MG301", Kind.CONVERTED, first.module, region.node or first.node, "torch_autocast is on; your region stays",
        "the engine would switch the region off", config=settings, lines=(0, 0),
    )  # fmt: skip
    yield from _others(training, forwards, trained, found, precision)


def _together(trained: list[Event], found: dict[Event, Precision]) -> Precision | None:
    """Under which condition the training's forwards run under autocast, whichever of them is run."""
    if not trained:
        return None
    common = nearest_common(trained)
    enabled = either(*(both(_within(event, common), found[event].enabled) for event in trained))
    dtypes = {found[event].dtype for event in trained if found[event].enabled is not FALSE}
    return Precision(enabled, next(iter(dtypes)) if len(dtypes) == 1 else None)


def _within(event: Event, common: Block) -> Condition:
    """The condition of an event, seen from a block around it."""
    tests: list[Condition] = []
    for block in event.block.around():
        if block is common:
            break
        tests.append(block.test)
    return both(*tests)


def _agree(trained: list[Event], found: dict[Event, Precision], precision: Precision) -> bool:
    """Whether each forward of the training runs in the precision that is said for all of them."""
    common = nearest_common(trained)
    for event in trained:
        assumed = {literal.atom: literal.holds for literal in literals_of(_within(event, common))}
        if under(precision.enabled, assumed) is not under(found[event].enabled, assumed):
            return False
    return True


def _others(
    training: Training, forwards: list[Event], trained: list[Event], found: dict[Event, Precision], wanted: Precision
) -> Iterator[Decision]:
    """Forwards in another precision than the training's go to the module."""
    seen: set[ast.AST] = set()
    for event in forwards:
        if event in trained or event.node in seen or _same(event, found[event], wanted) or training.is_before(event):
            continue
        seen.add(event.node)
        node = event.node
        if not isinstance(node, ast.Call) or event["method"] != Const(""):
            continue
        if any(other.node is node and _same(other, found[other], wanted) for other in forwards):
            yield Decision("MG306", Kind.TODO, event.module, node, "call the engine's module here where no autocast was", "both precisions meet here")
            continue
        yield Decision(
            "MG306", Kind.CONVERTED, event.module, node, f"{event.module.text(node.func)}(…) → {event.module.text(node.func)}.module(…)",
            "it ran outside of the training's autocast",
            edits=(Replace(event.module, node.func, (node.func, ".module")),),
        )  # fmt: skip


def _same(event: Event, precision: Precision, wanted: Precision) -> bool:
    """Whether a forward runs in the training's precision, as far as its own condition goes."""
    if precision == wanted:
        return True
    assumed = {literal.atom: literal.holds for literal in literals_of(event.condition)}
    on = under(wanted.enabled, assumed)
    return on is precision.enabled and (on is FALSE or precision.dtype == wanted.dtype)


def _precision(training: Training, event: Event) -> Precision:
    run = training.analysis.run
    blocks = regions_around(event, AUTOCAST)
    if not blocks:
        return Precision(FALSE, None)
    block = blocks[0]
    enabled: list[Condition] = []
    dtypes: dict[Value, None] = {}
    for condition, manager in _options(block):
        if isinstance(manager, Obj) and manager.made_by in AUTOCAST:
            on = truth(run, _argument(manager, "enabled", 2 if manager.made_by == "torch.autocast" else 0, TRUE_VALUE))
            enabled.append(both(condition, on))
            dtypes[_type_of(manager)] = None
    assumed = {literal.atom: literal.holds for literal in literals_of(event.condition)}
    condition = under(either(*enabled), assumed) if enabled else FALSE
    if condition is TRUE and len(dtypes) == 1:
        value = next(iter(dtypes))
        if value == Lib("torch.float32"):
            return Precision(FALSE, None)
        if isinstance(value, Choice):
            off = [one for one, kind in value.options if kind == Lib("torch.float32")]
            if off:
                left = [(one, kind) for one, kind in value.options if kind != Lib("torch.float32")]
                return Precision(negate(either(*off)), left[0][1] if len(left) == 1 else Choice(tuple(left)))
    return Precision(condition, next(iter(dtypes)) if len(dtypes) == 1 else None)


def _options(block: Block) -> Iterator[tuple[Condition, Value]]:
    label = block.label
    if isinstance(label, Choice):
        yield from ((condition, option) for condition, option in label.options if option is not UNBOUND)
    elif label is not None:
        yield TRUE, label


def _argument(manager: Obj, name: str, index: int, default: Value) -> Value:
    return manager.own.get(name, manager.own.get(index, default))


def _type_of(manager: Obj) -> Value:
    """The type of an autocast region; float16 where the script leaves it out on a GPU, bfloat16 on a CPU."""
    index = 1
    found = _argument(manager, "dtype", index, Const(None))
    if found != Const(None):
        return found
    device = _argument(manager, "device_type", 0, Const("cuda")) if manager.made_by == "torch.autocast" else Const("cuda")
    on_cpu = manager.made_by == "torch.cpu.amp.autocast" or device == Const("cpu")
    return Lib("torch.bfloat16") if on_cpu else Lib("torch.float16")


def _dtype(training: Training, value: Value | None, facts: Facts) -> tuple[str | None, str]:
    """The type of the config, and the expression that gives it where it depends on an option."""
    if isinstance(value, Lib):
        return _DTYPES.get(value.name), ""
    if isinstance(value, Choice):
        names = [one.name for one in each(value) if isinstance(one, Lib)]
        for condition, option in value.options:
            if isinstance(option, Lib) and holds_by_default(training.analysis, condition):
                names.insert(0, option.name)
        code = said(value, facts.site.names)
        if names and code is not None:
            return _DTYPES.get(names[0], "float16"), f'str({code}).removeprefix("torch.")'
    if isinstance(value, Expr):
        code = said(value, facts.site.names)
        if code is not None:
            return "bfloat16", f'str({code}).removeprefix("torch.")'
    return None, ""
