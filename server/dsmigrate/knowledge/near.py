"""Near misses: the key that a wrong name probably means."""

from __future__ import annotations

import functools
from collections.abc import Iterable

_MAXIMUM = {0: 0, 1: 0, 2: 1, 3: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 2}
_FOLD = str.maketrans({"-": "_", " ": "_", ".": "_"})


def nearest(word: str, names: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return the names that ``word`` may be a slip of, best first.

    A slip is a letter added, lost, changed or swapped with its neighbour: one in a word of two to four letters
    (``bp16``), two in up to eight, a quarter of the letters in longer ones. Case, dashes, missing underscores
    (``overlapComm``), and the order of the parts of a name (``comm_overlap``) count for nothing.
    """
    asked, letters = _spelled(word)
    allowed = _MAXIMUM.get(len(asked), max(2, len(asked) // 4))
    joined, parts = asked.replace("_", ""), _parts(asked)
    ranked = []
    for name in names:
        candidate, others = _spelled(name)
        if asked == candidate:
            distance = 0.0 if word == name else 0.1
        elif (letters ^ others) & ~_UNDERSCORE == 0 and joined == candidate.replace("_", ""):
            distance = 0.15
        elif letters == others and parts == _parts(candidate):
            distance = 0.2
        elif abs(len(candidate) - len(asked)) > allowed or (letters ^ others).bit_count() > 2 * allowed:
            continue  # a slip changes the length by one at most, and the set of letters by two
        else:
            found = slips(asked, candidate, allowed)
            if found is None:
                continue
            distance = float(found)
        ranked.append((distance, abs(len(candidate) - len(asked)), name))
    return [name for *_, name in sorted(ranked)[:limit]]


def slips(left: str, right: str, allowed: int) -> int | None:
    """Return how many slips lie between two words, or None when there are more than ``allowed``.

    Optimal string alignment: insert, delete, change, and swap two neighbours. Only places of the two words that are
    ``allowed`` or fewer letters apart can lie on the way.
    """
    size = len(right)
    if abs(len(left) - size) > allowed:
        return None
    far = allowed + 1
    before: list[int] = []
    last = [min(j, far) for j in range(size + 1)]
    for i, a in enumerate(left, start=1):
        row = [far] * (size + 1)
        row[0] = min(i, far)
        for j in range(max(1, i - allowed), min(size, i + allowed) + 1):
            b = right[j - 1]
            cost = last[j - 1] if a == b else 1 + min(last[j], row[j - 1], last[j - 1])
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row[j] = cost
        if min(row) > allowed:
            return None
        before, last = last, row
    return last[-1] if last[-1] <= allowed else None


def words(path: str) -> set[str]:
    """Return the words of a name or path: ``zero_optimization.stage`` has zero, optimization and stage."""
    return set(_folded(path).split("_")) - {""}


def _folded(word: str) -> str:
    return word.lower().translate(_FOLD)


@functools.lru_cache(maxsize=1024)
def _spelled(word: str) -> tuple[str, int]:
    """Return a word without case and dashes, and the set of its letters as bits."""
    folded = _folded(word)
    letters = 0
    for letter in folded:
        letters |= 1 << (ord(letter) & 63)
    return folded, letters


_UNDERSCORE = 1 << (ord("_") & 63)


def _parts(word: str) -> list[str]:
    return sorted(word.split("_"))
