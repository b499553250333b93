"""A comparison in one line: what a reviewer should know before reading on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.languages import say

_MOST = 3
"""How many things a sentence names; the rest is counted."""

_COSTS = (Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT)
_Said = Sequence[Explained]


def verdict(pair: Pair, explained: _Said) -> str:
    """Return the verdict, such as "Changes training: effective batch 64 → 128. 9 edits without effect".

    ``explained`` is in the order of importance. Configs that DeepSpeed cannot tell apart are "No semantic change".
    """
    acting = [said for said in explained if said.severity is not Severity.NONE]
    quiet = _quiet(pair, explained)
    if not acting:
        return _nothing(quiet, differs=pair.differs)
    sentences: list[str] = []
    changes_training = any(_is_training(said) for said in acting)
    left = [said for said in acting if not (changes_training and _is_little(said))]
    for takes, write in _SENTENCES:
        taken = [said for said in left if takes(said)]
        left = [said for said in left if not takes(said)]
        sentences += write(taken) if taken else []
    if quiet:
        sentences.append(say("{edits} without effect", edits=_edits(quiet)))
    return say(". ").join(sentences)


def _nothing(quiet: int, *, differs: bool) -> str:
    if differs:
        return say("Changes nothing that acts: {edits} without effect", edits=_edits(quiet))
    return (
        say("No semantic change: {edits} without effect", edits=_edits(quiet)) if quiet else say("No semantic change")
    )


def _quiet(pair: Pair, explained: _Said) -> int:
    """Count the edits of the files about which only is said that they do nothing."""
    told = {path for said in explained if said.severity is not Severity.NONE for path in said.paths}
    quiet = {path for said in explained if said.severity is Severity.NONE for path in said.paths} - told
    return sum(path in pair.changes and (path in pair.old.given or path in pair.new.given) for path in quiet)


def _is_fatal(said: Explained) -> bool:
    return Effect.VALIDITY in said.effects and said.severity is Severity.BREAKING


def _is_broken_anyway(said: Explained) -> bool:
    return said.effects == (Effect.VALIDITY,) and said.severity is Severity.WARNING and bool(said.brief)


def _is_tallied(said: Explained) -> bool:
    return bool(said.tally)


def _is_training(said: Explained) -> bool:
    return Effect.NUMERICS in said.effects and said.severity is not Severity.INFO and not said.tally


def _is_little(said: Explained) -> bool:
    return Effect.NUMERICS in said.effects and said.severity is Severity.INFO and not said.tally


def _is_cost(said: Explained) -> bool:
    return bool(set(_COSTS) & set(said.effects)) and Effect.NUMERICS not in said.effects and not said.tally


def _breaks(found: _Said) -> list[str]:
    names = _names(found)
    more = say(" (and {more} more)", more=len(names) - 1) if len(names) > 1 else ""
    return [say("Breaks the config: {named}", named=names[0] + more)]


def _training(found: _Said) -> list[str]:
    return [say("Changes training: {named}", named=_named(found))]


def _little(found: _Said) -> list[str]:
    return [say("Changes numbers a little: {named}", named=_named(found))]


def _broken_anyway(found: _Said) -> list[str]:
    return list(dict.fromkeys(_capital(said.brief) for said in found))[:1]


def _costs(found: _Said) -> list[str]:
    """Return a sentence for each thing with a name of its own, and one for the rest."""
    named = list(dict.fromkeys(_capital(said.brief) for said in found if said.brief))
    told = {effect for said in found if said.brief for effect in said.effects}
    unnamed = {effect for said in found if not said.brief for effect in said.effects} - told
    touched = [say(effect.value) for effect in _COSTS if effect in unnamed]
    most = _MOST + (len(named) == _MOST + 1)  # the last one takes no more room than its number
    more = [say("{number} more of this kind", number=len(named) - most)] if len(named) > most else []
    return [*named[:most], *more, *([say("Touches {listed}", listed=_listed(touched))] if touched else [])]


def _tallies(found: _Said) -> list[str]:
    counted = Counter(said.tally for said in found)
    return [
        text.format(count=count, values=say("1 value") if count == 1 else say("{count} values", count=count))
        for text, count in sorted(counted.items(), key=lambda item: "{" in item[0])
    ]


def _rest(found: _Said) -> list[str]:
    named = list(dict.fromkeys(_capital(said.brief) for said in found if said.brief))[:_MOST]
    logs = any(Effect.OBSERVABILITY in said.effects and not said.brief for said in found)
    valid = any(Effect.VALIDITY in said.effects and not said.brief for said in found)
    return [
        *named,
        *([say("Touches what DeepSpeed accepts")] if valid else []),
        *([say("Changes what is logged")] if logs else []),
    ]


_SENTENCES: tuple[tuple[Callable[[Explained], bool], Callable[[_Said], list[str]]], ...] = (
    (_is_fatal, _breaks),
    (_is_broken_anyway, _broken_anyway),
    (_is_training, _training),
    (_is_cost, _costs),
    (_is_little, _little),
    (_is_tallied, _tallies),
    (lambda _: True, _rest),
)
"""The sentences in their order: what each one takes of what is left, and how it says it."""


def _named(said: _Said) -> str:
    names = _names(said)
    more = len(names) - _MOST
    return say(", ").join(names[:_MOST]) + (say(" and {more} more", more=more) if more > 0 else "")


def _names(said: _Said) -> list[str]:
    return list(dict.fromkeys(one.brief or f"`{one.paths[0]}`" for one in said))


def _listed(words: Sequence[str]) -> str:
    return say(" and ").join(filter(None, (say(", ").join(words[:-1]), words[-1])))


def _edits(count: int) -> str:
    return say("{count} edit", count=count) if count == 1 else say("{count} edits", count=count)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
