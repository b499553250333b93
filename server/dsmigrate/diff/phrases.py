"""Words that explanations share: numbers, ratios, lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say

_MANY = {Fraction(1): mark("as many"), Fraction(2): mark("twice as many"), Fraction(1, 2): mark("half as many")}
_MUCH = {Fraction(1): mark("as much"), Fraction(2): mark("twice as much"), Fraction(1, 2): mark("half as much")}


EFFECTS = (
    mark("numerics"),
    mark("memory"),
    mark("communication"),
    mark("speed"),
    mark("checkpoint"),
    mark("validity"),
    mark("observability"),
)
"""What effects are called, as ``say`` gets them from their values."""
SEVERITIES = (mark("breaking"), mark("error"), mark("warning"), mark("info"), mark("hint"))
"""What severities are called, of changes and of findings."""


def number(value: object) -> str:
    """Return a value as a sentence shows it: whole floats without the ".0", texts and lists as JSON."""
    if isinstance(value, float) and abs(value) < 10**15 and value == int(value):
        return str(int(value))
    return json_text(value)


def as_many(ratio: Fraction) -> str:
    """Return how many there are for each one before: "twice as many", "1/3 as many", "0.75 times as many"."""
    return (
        say(_MANY[ratio])
        if ratio in _MANY
        else say("{factor} {en_times}as many", factor=factor(ratio), en_times="" if ratio.numerator == 1 else "times ")
    )


def as_much(ratio: Fraction) -> str:
    """Return how much there is for what was before: "twice as much", "1/3 as much", "0.75 times as much"."""
    if ratio in _MUCH:
        return say(_MUCH[ratio])
    return say("{factor} {en_times}as much", factor=factor(ratio), en_times="" if ratio.numerator == 1 else "times ")


def factor(ratio: Fraction) -> str:
    """Return a ratio in short: "3", "1/3", "0.75"."""
    if ratio.denominator == 1:
        return str(ratio.numerator)
    return f"1/{ratio.denominator}" if ratio.numerator == 1 else f"{float(ratio):.3g}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: "a, b and c"."""
    return say(" and ").join(filter(None, (say(", ").join(words[:-1]), words[-1]))) if words else ""


def gist(message: str) -> str:
    """Return what a message says first, without the advice and the remarks behind its first semicolon."""
    return re.split("; |；", message, maxsplit=1)[0]


def uncapital(text: str) -> str:
    """Return a sentence as it goes on after a colon: "the value …", but "DeepSpeed …" and "AutoTP …"."""
    word = text.partition(" ")[0]
    return text if word[1:] != word[1:].lower() else text[:1].lower() + text[1:]


def capital(text: str) -> str:
    """Return a sentence with its first letter in upper case; code in backticks stays as it is."""
    return text[:1].upper() + text[1:]
