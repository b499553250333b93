"""Autocast regions stay, and ``torch_autocast`` makes the engine run the model in the same precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.codemod import targets
from dsmigrate.codemod.analysis.analysis import (
    dividing,
    held_at,
    library_said,
    name_of,
    named,
    nearest_common,
    regions_around,
    within,
)
from dsmigrate.codemod.analysis.buffers import Buffers
from dsmigrate.codemod.analysis.code import Names, as_written, flag_said, holds_by_default, said
from dsmigrate.codemod.analysis.conditions import (
    FALSE,
    Condition,
    Plain,
    both,
    conjuncts,
    either,
    implied,
    left_of,
    options_of,
)
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.precision import (
    AUTOCAST,
    OFF,
    Precision,
    by_hand,
    precision_at,
    switch_of,
    type_by_default,
)
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Choice, Const, Expr, Lib, Obj, Value, each, forwards_in
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts, by_place, given_at
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Import, Insert, Replace
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG301",
        "Autocast regions stay, and torch_autocast is switched on",
        "The engine runs the model under the same autocast; the region around the loss is kept.",
        "engine.forward switches a surrounding autocast region off unless the config has torch_autocast. The empty "
        "lower_precision_safe_modules keeps gradients reduced in fp32 as DDP did: measured equal at ZeRO 0-3.",
        "deepspeed/runtime/torch_autocast.py, autocast_if_enabled",
        Kind.CONVERTED,
    ),
    Idea(
        "MG306",
        "Evaluation in a precision of its own uses the module",
        "Where the script evaluated the model outside any autocast region, or in another one than training did, engine.module is called.",
        "The engine runs every forward as torch_autocast says: also outside a region, and in whatever region it is called.",
        "deepspeed/runtime/engine.py, forward",
        Kind.CONVERTED,
    ),
    Idea(
        "MG307",
        "An autocast region that cannot be carried to the config",
        "Whether it is on, or its type, is known only inside the loop; training forwards ran in several precisions; or autocast is "
        "switched on otherwise than around the model (`__enter__`, a stack, `torch.set_autocast_enabled`).",
        "The engine reads torch_autocast when it is made, for every forward.",
        "deepspeed/runtime/torch_autocast.py",
        Kind.TODO,
    ),
)


@dataclass(frozen=True, slots=True)
class _Forwards:
    """The forwards of the wrapped model: those that the training's losses come from, and the others.

    ``wanted``: the precision of the former, whichever of them is run; None where they differ.
    """

    trained: tuple[Event, ...]
    others: tuple[Event, ...]
    wanted: Precision | None


def regions(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about the precision of the training's forwards, and of the others."""
    hand = list(by_hand(training.analysis))
    found = _forwards(training)
    left_alone = targets.holds("regions_left_alone", facts.options.target_version)
    if hand and found.trained and not left_alone:
        event = hand[0]
        yield Decision(
            "MG307", Kind.TODO, event.module, event.node, "autocast is switched on by hand here: enable torch_autocast in ds_config.json too",
            "the engine switches it off around its forward",
        )  # fmt: skip
        return
    if left_alone or not found.trained:
        return
    unread = next((block for event in found.trained for block in event.block.around() if _is_unread(block)), None)
    if (
        unread is not None
        and unread.node is not None
        and unread.module is not None
        and any("scaler" in event.what for event in training.steps)
    ):
        yield Decision(
            "MG307", Kind.TODO, unread.module, unread.node, "if this region switches autocast on, enable torch_autocast in ds_config.json too",
            "it is not read, and a gradient scaler is used",
        )  # fmt: skip
    if found.wanted is not None and found.wanted.enabled is not FALSE:
        first = next(event for event in found.trained if precision_at(training.analysis, event).enabled is not FALSE)
        settled = list(_setting(training, facts, found.wanted, first))
        yield from settled
        if any(one.kind is Kind.TODO for one in settled):
            return
    elif found.wanted is None:
        event = found.trained[0]
        yield _unsettled(event, "the training runs the model in several precisions")
        return
    yield from _others(training, found)


def _is_unread(block: Block) -> bool:
    return (
        block.kind is BlockKind.WITH
        and block.label is not None
        and any(isinstance(one, Expr) for one in each(block.label))
    )


def _forwards(training: Training) -> _Forwards:
    nodes = {(forward.node, forward.context) for event in training.backwards for forward in forwards_in(event["loss"])}
    every = [event for event in training.events(Happening.FORWARD) if training.is_wrapper(event["model"])]
    trained = tuple(event for event in every if (event.node, event.context) in nodes)
    others = tuple(event for event in every if event not in trained and not training.is_before(event))
    return _Forwards(trained, (*others, *_of_other_runs(training)), _together(training, trained))


def _of_other_runs(training: Training) -> Iterator[Event]:
    """The forwards of the model as it is, in runs that do not wrap it, by a name of the wrapper: the engine's in all runs."""
    behind = {
        (forward.node, forward.context)
        for event in training.events(Happening.BACKWARD)
        for forward in forwards_in(event["loss"])
    }
    for event in training.events(Happening.FORWARD):
        if (
            isinstance(event.node, ast.Call)
            and not training.is_wrapper(event["model"])
            and any(one in training.models for one in each(event["model"]))
            and (event.node, event.context) not in behind
            and not training.is_before(event)
            and training.is_named_wrapper(event, event.node.func)
        ):
            yield event


def _together(training: Training, trained: tuple[Event, ...]) -> Precision | None:
    """The precision of the training's forwards, whichever of them is run; None where they differ."""
    if not trained:
        return OFF
    common = nearest_common(trained)
    found = {event: precision_at(training.analysis, event) for event in trained}
    wrapped = either(*(event.condition for event in training.wraps))
    ways = {event: _as_far_as_known(left_of(within(event, common), wrapped)) for event in trained}
    enabled = left_of(either(*(both(ways[event], found[event].enabled) for event in trained)), wrapped)
    lasting = either(*(both(_of_run(ways[event]), found[event].enabled) for event in trained))
    dtypes = {one.dtype for one in found.values() if one.enabled is not FALSE}
    dtype = next(iter(dtypes)) if dtypes else None
    for one in sorted(
        {enabled, left_of(lasting, wrapped), *(one.enabled for one in found.values())},
        key=lambda one: (one.size, one.serial),
    ):
        wanted = Precision(one, dtype).under(wrapped)
        if all(wanted.under(ways[event]).enabled is found[event].under(ways[event]).enabled for event in trained):
            return wanted if len(dtypes) <= 1 else None
    switches = {_switched(event) for event in trained}
    if None not in switches and len(switches) == 1:  # one region, or several that are switched together
        return found[trained[0]].under(wrapped)
    return None


def _of_run(condition: Condition) -> Condition:
    """The parts of a condition that a run decides once."""
    return both(*(part for part in conjuncts(condition) if not part.loops))


def _as_far_as_known(condition: Condition) -> Condition:
    """A condition without those of its parts of which nothing is known."""
    return both(*(part for part in conjuncts(condition) if not isinstance(part, Plain)))


def _unsettled(event: Event, reason: str) -> Decision:
    blocks = regions_around(event, AUTOCAST)
    node = blocks[0].node if blocks and blocks[0].node is not None and blocks[0].module is event.module else event.node
    return Decision(
        "MG307", Kind.TODO, event.module, node, "set torch_autocast in ds_config.json as this region is", reason
    )


def _setting(training: Training, facts: Facts, wanted: Precision, first: Event) -> Iterator[Decision]:
    """``torch_autocast`` as the training's regions are; for some releases the region in the model's own forward."""
    code = (
        flag_said(training.analysis.run, wanted.enabled, facts.site.names)
        or _switch(training, facts, first)
        or _as_written(training, facts, first)
        or _by_manager(training, facts, first)
    )
    dtype = type_by_default(training.analysis, wanted.dtype) if wanted.dtype is not None else None
    dtype_code = "" if isinstance(wanted.dtype, Lib) or wanted.dtype is None else said(wanted.dtype, facts.site.names)
    if code is None or dtype is None or dtype_code is None:
        yield _unsettled(first, "when it is on, or its type, is not known where the engine is made")
        return
    enabled = "" if code in {"True", "False"} else code
    message, reason = "torch_autocast is on; your region stays", "the engine would switch the region off"
    if not targets.holds("torch_autocast", facts.options.target_version):
        site = facts.site
        kind = dtype_code or f"torch.{dtype}"
        line = f'ds_compat.enter_in_forward({site.model}, torch.autocast("cuda", dtype={kind}{f", enabled={enabled}" if enabled else ""}))'
        yield Decision(
            "MG301", Kind.CONVERTED, site.module, site.node, line, told("DeepSpeed {target_version} switches regions off around its forward", target_version=facts.options.target_version),
            edits=(Insert(site.module, site.node, ((line,),), after=site.wrap is None, rank=-1),), imports=(Import(site.module, "torch"),), lines=(0, 0),
        )  # fmt: skip
        return
    settings = {
        "torch_autocast.enabled": Setting(
            None, static=holds_by_default(training.analysis, wanted.enabled) is not False, code=enabled
        ),
        "torch_autocast.dtype": Setting(
            None, static=dtype, code=_type_said(wanted.dtype, dtype_code, facts.site.names) if dtype_code else ""
        ),
        "torch_autocast.lower_precision_safe_modules": Setting(None, static=[]),
    }
    block = regions_around(first, AUTOCAST)[0]
    yield Decision(
        "MG301", Kind.CONVERTED, first.module, block.node if block.module is first.module and block.node is not None else first.node, message, reason,
        config=settings, lines=(0, 0),
    )  # fmt: skip


def _type_said(dtype: Value | None, code: str, names: Names) -> str:
    """The name of a type, of which ``code`` gives the type itself."""
    if isinstance(dtype, Choice) and named(dtype, names) is None:
        kinds = [(condition, option) for condition, option in options_of(dtype) if isinstance(option, Lib)]
        chosen = choose((condition, Const(option.name.removeprefix("torch."))) for condition, option in kinds)
        found = said(chosen, names) if len(kinds) == len(dtype.options) else None
        if found is not None:
            return found
    return f'str({code}).removeprefix("torch.")'


def _switch(training: Training, facts: Facts, event: Event) -> str | None:
    """What a region is switched by, by a name that holds the same where the engine is made: ``config.AMP_ENABLE``."""
    manager = next(
        (one for one in each(regions_around(event, AUTOCAST)[0].label or NONE) if isinstance(one, Obj)), None
    )
    if manager is None:
        return None
    run = training.analysis.run
    given = switch_of(manager)
    if all(isinstance(one, Const) for one in each(given)):  # it is on wherever it stands
        return None
    within_all = {
        (one.op, one.args[1:]) if isinstance(one, Expr) and one.op in _WITHIN else None for one in each(given)
    }
    part = within_all.pop() if len(within_all) == 1 else None
    holders = choose((condition, one.args[0]) for condition, one in options_of(given) if isinstance(one, Expr) and part)
    for scope in facts.site.names:
        for name, held in scope.items():
            if part is not None and _is_same_setting(held, holders):
                return f"{name}.{part[1][0]}" if part[0] == "field" else f'{name}["{part[1][0]}"]'
            for one in each(held):
                holder = one if isinstance(one, Obj) else run.shadows.get(one) if isinstance(one, Expr) else None
                found = (
                    next(
                        (
                            key
                            for key, inner in holder.own.items()
                            if isinstance(key, str) and _is_same_setting(inner, given)
                        ),
                        None,
                    )
                    if holder is not None
                    else None
                )
                if found is not None:
                    return f"{name}.{found}"
    return None


def _as_written(training: Training, facts: Facts, event: Event) -> str | None:
    """What a region is switched by as it stands there."""
    block = regions_around(event, AUTOCAST)[0]
    made = {one.made_by for one in each(block.label or NONE) if isinstance(one, Obj)}
    index = 2 if made == {"torch.autocast"} else 0  # behind the device and the type
    given = given_at(block.node, index, "enabled") if isinstance(block.node, ast.Call) else None
    return None if given is None else as_written(training.analysis, given, event.names, facts.site.names)


def _by_manager(training: Training, facts: Facts, event: Event) -> str | None:
    """A test of what holds the manager, which is another one where autocast is off: ``amp_autocast is not suppress``."""
    node = regions_around(event, AUTOCAST)[0].node
    held = held_at(training.analysis.run, event.names, node.func) if isinstance(node, ast.Call) else None
    name = name_of(lambda value: [value] == held, facts.site.names) if held else None
    managers = list(each(held[0])) if held and name else []
    if not all(isinstance(one, Lib) for one in managers):
        return None
    for word, wanted in (("is", True), ("is not", False)):
        these = [one.name for one in managers if isinstance(one, Lib) and (one.name in AUTOCAST) is wanted]
        code = library_said(these[0], facts.site.names) if len(these) == 1 else None
        if code is not None:
            return f"{name} {word} {code}"
    return None


_WITHIN = frozenset({"field", "item"})
"""What an attribute or an item is of something that is not read."""


def _switched(event: Event) -> tuple[frozenset[Value], frozenset[Value]] | None:
    """What the innermost region around something is switched by, and its type, of whichever way leads there."""
    blocks = regions_around(event, AUTOCAST)
    manager = next((one for one in each(blocks[0].label or NONE) if isinstance(one, Obj)), None) if blocks else None
    if manager is None:
        return None
    return frozenset(each(switch_of(manager))), frozenset(each(manager.own.get("dtype", NONE)))


def _is_same_setting(setting: Value, given: Value) -> bool:
    """Whether a value at a place is that of a setting, as far as ways lead to the place."""
    if setting == given:
        return True
    known = {one: condition for condition, one in options_of(setting)}
    there = options_of(given)
    return (
        len(known) > 1
        and {one for _, one in there} == set(known)
        and all(implied(known[one], condition) is True for condition, one in there)
    )


def _others(training: Training, found: _Forwards) -> Iterator[Decision]:
    """Forwards in another precision than the training's go to the module."""
    wanted = found.wanted or OFF
    for node, events in by_place(found.others).items():
        event = events[0]
        if (
            all(_same(training, one, wanted) for one in events)
            or not isinstance(node, ast.Call)
            or event["method"] != Const("")
        ):
            continue
        text = event.module.text(node.func)
        due = Buffers(training).are_sent and all(dividing(one) is None for one in events)
        yield Decision(
            "MG306", Kind.CONVERTED, event.module, node, f"{text}(…) → {text}.module(…)", "it ran in another precision than the training",
            edits=(Replace(event.module, node.func, (node.func, ".module")), *(_sent(training, event, node.func) if due else ())),
            parts=frozenset({"broadcast_buffers"} if due else ()),
        )  # fmt: skip


def _sent(training: Training, event: Event, called: ast.expr) -> Iterator[Insert]:
    """Rank 0's buffers are sent before the loop that evaluates the module, which sends none, where it is bound already."""
    trained = _forwards(training).trained
    trains = {one.node for one in trained} | {block.node for one in trained for block in one.block.around()}
    names = {one.id for one in ast.walk(called) if isinstance(one, ast.Name)}
    own = event.module.step(event.node)
    place = own.node
    for step in own.around():  # by the text: what a generator goes over is a loop of its own
        if step.function is not own.function or not isinstance(step.node, ast.For | ast.AsyncFor | ast.While):
            continue
        inner = list(ast.walk(step.node))
        if any(
            one in trains or (isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in names)
            for one in inner
        ):
            break
        place = step.node
    yield Insert(event.module, place, ((f"ds_compat.broadcast_buffers({event.module.text(called)})",),))


def _same(training: Training, event: Event, wanted: Precision) -> bool:
    """Whether a forward runs in the training's precision, as far as its own condition goes."""
    switches = [_switched(one) for one in (event, *_forwards(training).trained)]
    if switches[0] and all(one == switches[0] for one in switches):
        return True
    own, other = precision_at(training.analysis, event), wanted.at(event)
    return own.enabled is other.enabled and (own.enabled is FALSE or own.dtype == other.dtype)
