"""Whether a key does anything in this file, and what keeps it from doing so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsmigrate.document import Path
from dsmigrate.editing.derived.force import in_force, own_path
from dsmigrate.knowledge import MISSING, Key, Status
from dsmigrate.knowledge.wording import condition_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context

_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})
Condition = tuple[str, Sequence[object]]


@dataclass(frozen=True, slots=True)
class Unmet:
    """A condition that does not hold: the path of a key, what it is here, and the values with which it would hold.

    Without values the path would have to be there. ``alternatives`` says in words what else would do, "" for nothing.
    """

    path: str
    held: object
    wanted: Sequence[object]
    alternatives: str = ""


def unmet(context: Context, key: Key, path: Path) -> Unmet | None:
    """Return the first condition of a key that does not hold in this file; None when all hold, or may hold.

    ``path`` is where the file has the key, for the free names in it. The conditions of its section are its own too.
    """
    section = context.known.key(key.parent) if key.parent else None
    around = section.effective_when.items() if section is not None else ()
    found = _first(context, [*key.effective_when.items(), *around], path)
    if found is not None or not key.effective_when_any:
        return found
    failing = [_first(context, one.items(), path) for one in key.effective_when_any]
    first = failing[0]
    if first is None or not all(failing):
        return None
    words = say(" or when ").join(condition_text(one) for one in key.effective_when_any)
    return Unmet(first.path, first.held, first.wanted, words)


def shadowed_by(context: Context, path: Path) -> str:
    """Return the section that is read instead of the one around ``path``, which is another name of it; "" for none.

    ``bfloat16`` counts only while ``bf16`` is absent or null.
    """
    section = context.known.key(path[:1])
    if section is None or section.alias_of is None:
        return ""
    other = context.document.node_at((section.alias_of,))
    return section.alias_of if other is not None and other.value() is not None else ""


def _first(context: Context, conditions: Iterable[Condition], path: Path) -> Unmet | None:
    for condition, wanted in conditions:
        asked = context.known.key(condition)
        if asked is None or asked.status not in _HERE:
            continue
        own = own_path(condition, path)
        if not wanted:
            if not context.has(own):
                return Unmet(condition, MISSING, wanted)
            continue
        held = in_force(context, own)
        if held is not UNKNOWN and not any(_same(held, value, any_case=asked.ignores_case) for value in wanted):
            return Unmet(condition, held, wanted)
    return None


def _same(held: object, wanted: object, *, any_case: bool) -> bool:
    if held is MISSING:
        held = None
    if any_case and isinstance(held, str) and isinstance(wanted, str):
        return held.lower() == wanted.lower()
    return held == wanted and isinstance(held, bool) is isinstance(wanted, bool)
