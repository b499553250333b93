"""Sentences that are made in English, kept and compared, and said in the reader's language in the end."""

from __future__ import annotations

from collections.abc import Mapping

from dsmigrate.languages.spoken import say


class Told(str):
    """An English sentence that remembers what it was filled in from, so that ``retold`` can say it otherwise."""

    __slots__ = ("filled", "template")

    template: str
    filled: Mapping[str, object]


def told(template: str, /, **filled: object) -> Told:
    """Return a sentence with its names in braces filled in; what is filled in may be told, or a sentence of its own."""
    made = Told(template.format(**filled))
    made.template, made.filled = template, filled
    return made


def retold(sentence: str) -> str:
    """Return a told sentence in the spoken language; any other text as the catalogue has it, and names as they are."""
    if not isinstance(sentence, Told):
        return say(sentence) if " " in sentence else sentence
    filled = {name: retold(value) if isinstance(value, str) else value for name, value in sentence.filled.items()}
    return say(sentence.template, **filled)


__all__ = ["Told", "retold", "told"]
