"""What explanations of ZeRO have in common: keys that begin or cease to act, sizes, figures of both sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.memory import size
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.editing.derived.sizes import bytes_text, count_text, whole
from dsmigrate.languages import mark, say
from dsmigrate.memory import Traffic, model_of, ranks_of, traffic
from dsmigrate.rules.context import UNKNOWN
from dsmigrate.rules.precision._shared import uses_bf16_optimizer

ZERO = "zero_optimization"
STAGE = f"{ZERO}.stage"


@dataclass(frozen=True, slots=True)
class Move:
    """What DeepSpeed takes for a key before and after; ``begins`` is whether only the new side reads it.

    Where it begins, ``before`` is the default: what would hold if the new file left the key out.
    """

    path: str
    before: object
    after: object
    begins: bool


def moved(pair: Pair, name: str, section: str = ZERO) -> Move | None:
    """Return how a key moves that acts on the new side and means something else now; None where a side is not known.

    None as well where something stands instead of a number, which the rules tell. What acts on the old side alone is
    told by itself (``ceasing``).
    """
    path = f"{section}.{name}"
    if pair.change(path) is None or stands_in(pair, path):
        return None
    before, after = pair.values(path)
    if before is UNKNOWN or after is UNKNOWN or not all(_makes_sense(pair, path, one) for one in (before, after)):
        return None
    was, now = pair.lives(path)
    if not now:
        return None
    return Move(path, before if was else pair.new.known.default(path), after, begins=not was)


def _makes_sense(pair: Pair, path: str, value: object) -> bool:
    """Return whether a key that is a number has one; null where it may be."""
    key = pair.new.known.key(path)
    kinds = set(key.type) if key is not None else set()
    if not kinds or not kinds <= {"integer", "number", "null"}:
        return True
    return "null" in kinds if value is None else isinstance(value, (int, float))


def stands_in(pair: Pair, path: str) -> bool:
    """Return whether ``BF16_Optimizer`` stands in for stage 1 on the new side and does not read a key."""
    return path in _OF_STAGE_1 and uses_bf16_optimizer(pair.new.context)


_OF_STAGE_1 = frozenset(
    f"{ZERO}.{name}"
    for name in (
        "contiguous_gradients",
        "overlap_comm",
        "parameter_alignment",
        "reduce_bucket_size",
        "reduce_scatter",
        "round_robin_gradients",
        "use_multi_rank_bucket_allreduce",
    )
)
"""The keys that the engine hands to stage 1 and not to what stands in for it."""


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
    if move is not None and bool(move.before) is not bool(move.after):
        yield move, bool(move.after)


def elements(value: object, *, alone: bool = False) -> str:
    """Return a number of elements in short, ``alone`` without a word after it; a number without sense as it is."""
    count = whole(value)
    if count is None and isinstance(value, (int, float)) and value > 0:
        return say("any number") if alone else say("any number of")
    return str(value) if count is None else count_text(count)


def in_bytes(side: Side, path: str, value: object) -> str:
    """Return what a number of elements takes on a side: "0.93 GiB in bf16"; "" where that is nothing or open."""
    key = side.known.key(path)
    found = size(side.context, key, value) if key is not None else None
    return "" if found is None else found.short


def of_weights(side: Side, count: int) -> str:
    """Return what some weights take on a side: "0.93 GiB in bf16"."""
    weights = precision(side.context).weights
    return say(
        "{number} in {what}", number=bytes_text(count * WIDTHS[weights or "bf16"]), what=weights or say("16 bit")
    )


def tail(move: Move, was: str, takes: str = "", took: str = "", where: str = "") -> str:
    """Return how a sentence about an amount ends: what it was, and what both take.

    " instead of 500 M: 381 MiB instead of 0.93 GiB in bf16 on each GPU", or where the key begins to act
    ", 381 MiB in bf16 on each GPU; the default is 500 M".
    """
    if move.begins:
        return say(
            "{more}; the default is {was}",
            more=say(", {takes}{where}", takes=takes, where=where) if takes else "",
            was=was,
        )
    if not takes:
        return say(" instead of {was}", was=was)
    return say(
        " instead of {was}: {what}{where}",
        was=was,
        what=say("{shortened} instead of {took}", shortened=shortened(takes, took), took=took) if took else takes,
        where=where,
    )


def both_sizes(pair: Pair, move: Move) -> tuple[str, str]:
    """Return what a number of elements takes now and before, in bytes; "" where that is nothing or open."""
    return in_bytes(pair.new, move.path, move.after), in_bytes(pair.old, move.path, move.before)


def shortened(size: str, other: str) -> str:
    """Return a size without its format where another one after it has the same: "381 MiB", with "0.93 GiB in bf16"."""
    amount, within, kind = size.partition(" in ")
    return amount if within and other.endswith(f" in {kind}") else size


def volumes(pair: Pair) -> tuple[Traffic, Traffic] | None:
    """Return what both sides send for a step; None where a stage is not known."""
    before, after = traffic(pair.old.context), traffic(pair.new.context)
    return None if before is None or after is None else (before, after)


def sends(pair: Pair) -> str:
    """Return how the elements that a GPU sends per step change: "about 3Ψ elements per step instead of 2Ψ".

    "" where they stay, and where that is not known. g is the number of micro-batches. Where parameters and GPUs are
    known it is bytes, of ring algorithms: "about 36.7 GiB per step instead of 24.4 GiB".
    """
    found = volumes(pair)
    if found is None:
        return ""
    old, new = found
    if None in {old.steps, new.steps}:
        old, new = (dataclasses.replace(one, steps=None) for one in found)
    before, after = old.formula(), new.formula()
    if before == after:
        return ""
    each = 1 if old.steps is None else None
    now, was = (_bytes_sent(one, side, each) for one, side in ((new, pair.new), (old, pair.old)))
    if now and was:
        sentence = _SENT if each is None else _SENT_EACH
        return say(sentence, now=now, was=was)
    g = say(" (g micro-batches per step)") if "g" in before + after else ""
    return say("each GPU sends about {after} elements per step instead of {before}{g}", after=after, before=before, g=g)


_SENT = mark("each GPU sends about {now} per step instead of {was}")
_SENT_EACH = mark("each GPU sends about {now} in a step of one micro-batch instead of {was}")


def _bytes_sent(found: Traffic, side: Side, steps: int | None) -> str:
    """Return what a GPU sends for a step of so many micro-batches, None for those that it has; "" if that is open."""
    model, ranks = model_of(side.context), ranks_of(side.context)
    found = dataclasses.replace(found, steps=steps or found.steps)
    sent = found.sent(model, ranks) if model is not None and ranks else None
    return "" if sent is None else bytes_text(sent)
