"""What explanations of ZeRO have in common: keys that begin or cease to act, sizes, figures of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.inert import unmet
from dsmigrate.editing.derived.memory import size
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.editing.derived.sizes import bytes_text, count_text, whole
from dsmigrate.memory import Traffic, traffic
from dsmigrate.rules.context import UNKNOWN

ZERO = "zero_optimization"
STAGE = f"{ZERO}.stage"


@dataclass(frozen=True, slots=True)
class Move:
    """What DeepSpeed takes for a key before and after; ``begins`` and ``ends`` are whether only one side reads it.

    Where it begins, ``before`` is the default: what would hold if the new file left the key out.
    """

    path: str
    before: object
    after: object
    begins: bool
    ends: bool

    @property
    def was(self) -> str:
        """How a sentence calls the value of before: "in place of" where it counted, "where … is the default"."""
        return "; the default is" if self.begins else " in place of"


def moved(pair: Pair, name: str, section: str = ZERO) -> Move | None:
    """Return how a key moves that acts on a side and means something else now; None where a side is not known."""
    path = f"{section}.{name}" if section else name
    if pair.change(path) is None:
        return None
    before, after = pair.values(path)
    if before is UNKNOWN or after is UNKNOWN:
        return None
    was, now = pair.lives(path)
    return Move(
        path, pair.new.known.default(path) if now and not was else before, after, now and not was, was and not now
    )


def ceased(pair: Pair, move: Move) -> Explained:
    """Return that a key no longer matters, since another one changed: what that does, it does itself."""
    key = pair.new.known.key(move.path)
    found = unmet(pair.new.context, key, pair.new.place(move.path)) if key is not None else None
    cause = (
        f": `{found.path}` decides that, and changes too" if found is not None and found.path in pair.changes else ""
    )
    return pair.says(
        move.path, effects=(Effect.NONE,), severity=Severity.NONE, message=f"It no longer does anything{cause}"
    )


def told(
    pair: Pair,
    move: Move,
    message: str,
    *,
    severity: Severity = Severity.INFO,
    effects: tuple[Effect, ...] = (),
    advice: str = "",
    brief: str = "",
    more: tuple[str, ...] = (),
) -> Explained:
    """Return a message about a key, with the effects that the facts give it unless others are named."""
    return pair.says(
        move.path,
        *more,
        effects=effects or effects_of(pair, move.path),
        severity=severity,
        message=message,
        advice=advice,
        brief=brief,
    )


def switched(pair: Pair, name: str, section: str = ZERO) -> Iterator[tuple[Move, bool]]:
    """Yield a switch that goes on or off, with whether it is on now."""
    move = moved(pair, name, section)
    if move is not None and not move.ends and bool(move.before) is not bool(move.after):
        yield move, bool(move.after)


def elements(value: object) -> str:
    """Return a number of elements in short; the number as it is where it makes no sense."""
    count = whole(value)
    if count is None and isinstance(value, (int, float)) and value > 0:
        return "any number of"
    return str(value) if count is None else count_text(count)


def in_bytes(side: Side, path: str, value: object) -> str:
    """Return what a number of elements takes on a side: "0.93 GiB in bf16"; "" where that is nothing or open."""
    key = side.known.key(path)
    found = size(side.context, key, value) if key is not None else None
    return "" if found is None else found.short


def of_weights(side: Side, count: int) -> str:
    """Return what some weights take on a side: "0.93 GiB in bf16"."""
    weights = precision(side.context).weights
    return f"{bytes_text(count * WIDTHS[weights or 'bf16'])} in {weights or '16 bit'}"


def sizes(pair: Pair, move: Move) -> str:
    """Return what a number of elements takes on both sides: ": 0.37 GiB in bf16 in place of 0.93 GiB in bf16"."""
    before = in_bytes(pair.new if move.begins else pair.old, move.path, move.before)
    after = in_bytes(pair.new, move.path, move.after)
    if not before or not after:
        return f", {after}" if after else ""
    return f": {shortened(after, before)}{move.was} {before}"


def shortened(size: str, other: str) -> str:
    """Return a size without its format where another one after it has the same: "381 MiB", with "0.93 GiB in bf16"."""
    amount, within, kind = size.partition(" in ")
    return amount if within and other.endswith(f" in {kind}") else size


def volumes(pair: Pair) -> tuple[Traffic, Traffic] | None:
    """Return what both sides send for a step; None where a stage is not known."""
    before, after = traffic(pair.old.context), traffic(pair.new.context)
    return None if before is None or after is None else (before, after)


def sends(pair: Pair) -> str:
    """Return how the elements that a GPU sends per step change: "about 3Ψ elements per step in place of 2Ψ".

    "" where they stay, and where that is not known. g is the number of micro-batches.
    """
    found = volumes(pair)
    if found is None:
        return ""
    before, after = (one.formula() for one in found)
    if before == after:
        return ""
    g = " (g micro-batches per step)" if "g" in before + after else ""
    return f"each GPU sends about {after} elements per step in place of {before}{g}"
