"""Accepting what completion offers, and what comes of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from dsmigrate.document import TextEdit, apply, parse
from dsmigrate.editing import View
from dsmigrate.editing.completion import Item, complete
from dsmigrate.rules import Settings, Severity, check
from tests.editing.completion.half_typed import Moment
from tests.editing.completion.snippets import expanded

Place = tuple[str, tuple[str | int, ...]]


@dataclass(frozen=True, slots=True)
class Fault:
    """An item that broke the text, or made DeepSpeed refuse it."""

    moment: Moment
    settings: Settings
    item: Item
    after: str
    errors: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        """Tell the fault, with the cursor as a bar."""
        text, offset = self.moment.text, self.moment.offset
        shown = f"{text[max(0, offset - 300) : offset]}|{text[offset : offset + 200]}"
        found = "; ".join(sorted(f"{code}: {told}" for code, told in self.errors)) or "not readable"
        who = f"{self.settings.consumer.value} {self.settings.version or 'newest'}"
        return f"{self.moment.kind} ({who}): {self.item.label!r} -> {self.item.new_text!r}\n{found}\n{shown}\n"


def accepted(text: str, item: Item) -> str:
    """Return the text after an item was accepted and its placeholders were left as they are."""
    new = expanded(item.new_text) if item.is_snippet else item.new_text
    return apply(text, [TextEdit(item.start, item.end, new), *item.edits])


@lru_cache(maxsize=20_000)
def errors(text: str, settings: Settings) -> dict[Place, str]:
    """Return the errors of a text by code and path; no known bugs, which a release has with what it takes (DS970)."""
    found = [one for one in check(parse(text), settings) if one.severity is Severity.ERROR and one.code != "DS970"]
    return {(finding.code, finding.path): finding.message for finding in found}


def faults(
    moments: Iterable[tuple[random.Random, Moment]], settings: Iterable[Settings], *, count: int, each: int
) -> Iterator[Fault | None]:
    """Yield for each of ``count`` accepted items what is wrong with it, or None; at most ``each`` items of a moment."""
    done = 0
    every = list(settings)
    for rng, moment in moments:
        chosen = rng.choice(every)
        items = complete(View(parse(moment.text), chosen), moment.offset, snippets=rng.random() < 0.5)
        if not items or not parse(moment.before).is_readable:
            continue
        for item in rng.sample(items, min(each, len(items))):
            yield fault(moment, chosen, item)
            done += 1
            if done >= count:
                return


def fault(moment: Moment, settings: Settings, item: Item) -> Fault | None:
    """Return what is wrong after an item was accepted; None when nothing is that was not before."""
    after = accepted(moment.text, item)
    if not parse(after).is_readable:
        return Fault(moment, settings, item, after, frozenset())
    new = _new(moment, errors(after, settings), settings)
    return Fault(moment, settings, item, after, frozenset(new)) if new else None


def _new(moment: Moment, found: dict[Place, str], settings: Settings) -> set[tuple[str, str]]:
    """Return the errors that are there because of an item.

    Not so those that were there before, be it at another place or by another rule, and those that the whole config has
    elsewhere.
    """
    before, whole = errors(moment.before, settings), errors(moment.whole, settings)
    wrong = {path for _, path in before if path}
    elsewhere = {place for place in whole if not moment.path or place[1][: len(moment.path)] != moment.path}
    before_by_code = Counter(code for code, _ in before)
    after_by_code = Counter(code for code, _ in found)
    return {
        (code, told)
        for (code, path), told in found.items()
        if (code, path) not in {*before, *elsewhere}
        and path not in wrong
        and after_by_code[code] > before_by_code[code]
    }
