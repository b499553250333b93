"""JSON that is written into Python: the three words that both spell in their own way."""

from __future__ import annotations

import re

_WORDS = {"true": "True", "false": "False", "null": "None"}
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"?|\b(?:true|false|null)\b')


def as_python(text: str) -> str:
    """Return a piece of JSON, whole or half, as Python; texts in quotes stay as they are."""
    return _JSON.sub(lambda found: _WORDS.get(found[0], found[0]), text)
