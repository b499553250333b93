"""Filling sentences of a language that is written without blanks between its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter

_HAN = re.compile("[\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef]")
_BEFORE = re.compile(f"{_HAN.pattern} $")
_BEHIND = re.compile(f" {_HAN.pattern}")


def joined(template: str, filled: Mapping[str, object]) -> str:
    """Return a sentence filled in, without the blank beside a name where Han characters meet.

    A catalogue has a blank between Han characters and a name, as most of what is filled in is code.
    """
    if not any(isinstance(value, str) and _HAN.search(value) for value in filled.values()):
        return template.format(**filled)
    said = ""
    ends_han = False
    for literal, name, form, conversion in Formatter().parse(template):
        said += literal[1:] if ends_han and _BEHIND.match(literal) else literal
        if name is None:
            continue
        value = f"{{{name}{f'!{conversion}' if conversion else ''}:{form}}}".format(**filled)
        said = (said[:-1] if _HAN.match(value) and _BEFORE.search(said) else said) + value
        ends_han = _HAN.match(value[-1:]) is not None
    return said
