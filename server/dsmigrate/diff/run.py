"""Comparing two configs: changes, explanations, order, verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dsmigrate.diff import compare
from dsmigrate.diff.model import Effect, Explained, Result, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import every_explanation
from dsmigrate.diff.side import Side
from dsmigrate.diff.verdict import verdict
from dsmigrate.editing.view import View


def compare_views(
    old: View, new: View, *, names: tuple[str, str] = ("old", "new"), takes: Callable[[str], bool] = lambda _: True
) -> Result:
    """Return what differs between two configs and what that does; views bring release, consumer and facts.

    Equivalent configs give a Result without changes that differ. ``takes`` says of the code of an explanation whether
    it is to be in the result.
    """
    left, right = Side(old, names[0], new.known), Side(new, names[1], old.known)
    pair = Pair(left, right, compare.changes(left, right))
    found: list[Explained] = []
    for item in sorted(every_explanation(), key=lambda item: item.last):
        pair.code = item.code
        said = list(item.explain(pair))
        found += said
        pair.acts = pair.acts or any(one.severity is not Severity.NONE for one in said)
        pair.found.update(finding for one in said for finding in one.found)
        pair.mentioned.update(path for one in said for path in one.paths)
        pair.claimed.update(path for one in said if _tells(one) for path in one.paths)
    ordered = tuple(sorted(_once(said for said in found if takes(said.code)), key=_importance))
    return Result(dict(pair.changes), ordered, verdict(pair, ordered))


def _once(found: Iterable[Explained]) -> Iterator[Explained]:
    """Yield what is said, without "no effect" for keys of which is said what their change does."""
    every = list(found)
    told = {path for said in every if not (said.severity is Severity.NONE or _is_flaw(said)) for path in said.paths}
    yield from (said for said in every if said.severity is not Severity.NONE or not told.issuperset(said.paths))


def _is_flaw(said: Explained) -> bool:
    """Return whether it is about what is wrong with the new config without breaking it."""
    return said.effects == (Effect.VALIDITY,) and said.severity is Severity.WARNING


def _tells(said: Explained) -> bool:
    """Return whether it says what a change does; a remark about validity does not, unless nothing runs."""
    return Effect.VALIDITY not in said.effects or said.severity in {Severity.BREAKING, Severity.NONE}


_ORDER = list(Severity)


def _importance(said: Explained) -> tuple[int, str, tuple[str, ...]]:
    return _ORDER.index(said.severity), said.code, said.paths
