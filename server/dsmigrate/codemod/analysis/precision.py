"""In which precision something runs: the autocast regions around it, whether they are on, and in which type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import Analysis, regions_around, static_value
from dsmigrate.codemod.analysis.code import holds_by_default
from dsmigrate.codemod.analysis.conditions import (
    FALSE,
    TRUE,
    Condition,
    both,
    either,
    left_of,
    negate,
    options_of,
)
from dsmigrate.codemod.analysis.events import Block, Event, Happening
from dsmigrate.codemod.analysis.expressions import truth
from dsmigrate.codemod.analysis.run import Run
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.values import NONE, TRUE_VALUE, Choice, Const, Expr, Lib, Obj, Value, each

AUTOCAST = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_FULL = Lib("torch.float32")
_SAME = {"torch.half": "torch.float16", "torch.float": "torch.float32"}
_BY_HAND = frozenset(
    {
        "torch.set_autocast_enabled",
        "torch.set_autocast_cpu_enabled",
        "torch.set_autocast_gpu_dtype",
        "torch.set_autocast_dtype",
    }
)


@dataclass(frozen=True, slots=True)
class Precision:
    """Under which condition autocast is on, and the type that it computes in; None where that is not known."""

    enabled: Condition
    dtype: Value | None

    def under(self, assumed: Condition) -> Precision:
        """The precision where a condition holds."""
        dtype = self.dtype
        if isinstance(dtype, Choice):
            ways = ((left_of(condition, assumed), option) for condition, option in options_of(dtype))
            dtype = choose((condition, option) for condition, option in ways if condition is not FALSE)
        return Precision(left_of(self.enabled, assumed), dtype)

    def at(self, event: Event) -> Precision:
        """The precision where an event is."""
        found = self
        for block in event.block.around():  # one by one: all together may be more than a condition holds
            found = found.under(block.test)
        return found


OFF = Precision(FALSE, None)


def precision_at(analysis: Analysis, event: Event) -> Precision:
    """The precision in which something runs."""
    return _within(analysis.run, regions_around(event, AUTOCAST)).at(event)


def _within(run: Run, blocks: list[Block]) -> Precision:
    """The precision within regions, from the inside out: the innermost decides, unless it is another manager on some ways."""
    if not blocks:
        return OFF
    enabled: list[Condition] = []
    dtypes: list[tuple[Condition, Value]] = []
    for condition, manager in options_of(blocks[0].label or NONE):
        if isinstance(manager, Obj) and manager.made_by in AUTOCAST:
            dtype = type_of(manager)
            found = Precision(both(condition, truth(run, switch_of(manager)), negate(_is_full(dtype))), _plain(dtype))
        else:
            outer = _within(run, blocks[1:])
            found = Precision(both(condition, outer.enabled), outer.dtype)
        enabled.append(found.enabled)
        if found.enabled is not FALSE and found.dtype is not None:
            dtypes.append((found.enabled, found.dtype))
    kinds = {dtype for _, dtype in dtypes}
    return Precision(either(*enabled), next(iter(kinds)) if len(kinds) == 1 else choose(dtypes) if dtypes else None)


def switch_of(manager: Obj) -> Value:
    """What an autocast region is switched on or off by."""
    return _argument(manager, "enabled", 2 if manager.made_by == "torch.autocast" else 0, TRUE_VALUE)


def _argument(manager: Obj, name: str, index: int, default: Value) -> Value:
    return manager.own.get(name, manager.own.get(index, default))


def type_of(manager: Obj) -> Value:
    """The type of an autocast region; float16 where the script leaves it out on a GPU, bfloat16 on a CPU."""
    found = _argument(manager, "dtype", 1, NONE)
    if found != NONE:
        return found
    device = (
        _argument(manager, "device_type", 0, Const("cuda")) if manager.made_by == "torch.autocast" else Const("cuda")
    )
    on_cpu = manager.made_by == "torch.cpu.amp.autocast" or device == Const("cpu")
    return Lib("torch.bfloat16") if on_cpu else Lib("torch.float16")


def _plain(dtype: Value) -> Value:
    """A type without the options that mean no autocast, by its first name."""
    if isinstance(dtype, Choice):
        return choose((condition, _plain(option)) for condition, option in options_of(dtype) if option != _FULL)
    return Lib(_SAME.get(dtype.name, dtype.name)) if isinstance(dtype, Lib) else dtype


def _is_full(dtype: Value) -> Condition:
    """Under which condition a type is float32, for which autocast does nothing."""
    if isinstance(dtype, Choice):
        return either(*(condition for condition, option in options_of(dtype) if option == _FULL))
    return TRUE if dtype == _FULL else FALSE


def type_by_default(analysis: Analysis, dtype: Value) -> str | None:
    """The name of a type where no option is given."""
    if isinstance(dtype, Lib):
        return dtype.name.removeprefix("torch.")
    if isinstance(dtype, Choice):
        named = [(condition, option) for condition, option in options_of(dtype) if isinstance(option, Lib)]
        chosen = next(
            (option for condition, option in named if holds_by_default(analysis, condition)),
            named[0][1] if named else None,
        )
        return None if chosen is None else chosen.name.removeprefix("torch.")
    if isinstance(dtype, Expr) and dtype.op == "getattr":
        name = static_value(analysis, dtype.args[1])
        return name if name in {"float16", "bfloat16", "half"} else "bfloat16"
    return "bfloat16" if isinstance(dtype, Expr) else None


def by_hand(analysis: Analysis) -> Iterator[Event]:
    """Where autocast is switched on without a region: by a call, ``__enter__`` or a stack."""
    for event in analysis.of(Happening.PRECISION):
        name = event["name"]
        if (isinstance(name, Const) and name.value in _BY_HAND) or any(
            isinstance(one, Obj) and one.made_by in AUTOCAST for one in each(event.what.get("manager", NONE))
        ):
            yield event
