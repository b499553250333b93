"""Examples of rules: the marks of expected places, and what a rule alone says to an example."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import parse
from dsmigrate.rules import Example, Finding, Rule, Settings
from dsmigrate.rules.fixing import Fixed, fix_all
from dsmigrate.rules.run import check_with

OPEN, CLOSE = "«", "»"


@dataclass(frozen=True, slots=True)
class Marked:
    """The text of an example without its marks, and the ranges that were marked."""

    text: str
    ranges: tuple[tuple[int, int], ...]


def marked(config: str) -> Marked:
    """Return an example's text and ranges; marks may be nested. Raises ValueError for marks that do not pair."""
    text = ""
    waiting: list[int] = []
    ranges: list[tuple[int, int]] = []
    for character in config:
        if character == OPEN:
            waiting.append(len(text))
        elif character == CLOSE:
            if not waiting:
                raise ValueError(f"{CLOSE} without {OPEN} in {config!r}")
            ranges.append((waiting.pop(), len(text)))
        else:
            text += character
    if waiting:
        raise ValueError(f"{OPEN} without {CLOSE} in {config!r}")
    return Marked(text, tuple(sorted(ranges)))


def settings(example: Example) -> Settings:
    """Return what an example is checked for."""
    return Settings(version=example.version, consumer=example.consumer, facts=example.facts)


def findings(rule: Rule, example: Example) -> list[Finding]:
    """Return what the rule alone finds in an example."""
    return check_with(parse(marked(example.config).text), settings(example), [rule])


def fixed(rule: Rule, example: Example) -> Fixed:
    """Return the example after the fixes of the rule alone, unsafe ones included."""
    document = parse(marked(example.config).text)
    return fix_all(document, lambda text: check_with(text, settings(example), [rule]), unsafe=True)
