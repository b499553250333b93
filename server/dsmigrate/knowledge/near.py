"""Near misses: the key that a wrong name probably means."""

from __future__ import annotations

from collections.abc import Iterable

_MAXIMUM = {0: 0, 1: 0, 2: 1, 3: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 2}
_FOLD = str.maketrans({"-": "_", " ": "_", ".": "_"})


def nearest(word: str, names: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return the names that ``word`` may be a slip of, best first.

    A slip is a letter added, lost, changed or swapped with its neighbour: one in a word of two to four letters
    (``bp16``), two in up to eight, a quarter of the letters in longer ones. Case, dashes, missing underscores
    (``overlapComm``), and the order of the parts of a name (``comm_overlap``) count for nothing.
    """
    asked = _folded(word)
    allowed = _MAXIMUM.get(len(asked), max(2, len(asked) // 4))
    ranked = []
    for name in names:
        candidate = _folded(name)
        distance = _distance(asked, candidate, allowed, word, name)
        if distance is not None:
            ranked.append((distance, abs(len(candidate) - len(asked)), name))
    return [name for *_, name in sorted(ranked)[:limit]]


def _distance(asked: str, candidate: str, allowed: int, word: str, name: str) -> float | None:
    if asked == candidate:
        return 0.0 if word == name else 0.1
    if asked.replace("_", "") == candidate.replace("_", ""):
        return 0.15
    if _parts(asked) == _parts(candidate):
        return 0.2
    found = slips(asked, candidate, allowed)
    return None if found is None else float(found)


def slips(left: str, right: str, allowed: int) -> int | None:
    """Return how many slips lie between two words, or None when there are more than ``allowed``.

    Optimal string alignment: insert, delete, change, and swap two neighbours.
    """
    if abs(len(left) - len(right)) > allowed:
        return None
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        row = [i]
        for j, b in enumerate(right, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > allowed:
            return None
        before, last = last, row
    return last[-1] if last[-1] <= allowed else None


def words(path: str) -> set[str]:
    """Return the words of a name or path: ``zero_optimization.stage`` has zero, optimization and stage."""
    return set(_folded(path).split("_")) - {""}


def _folded(word: str) -> str:
    return word.lower().translate(_FOLD)


def _parts(word: str) -> list[str]:
    return sorted(word.split("_"))
