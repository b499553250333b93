"""Numbers that keep the text they were written as, and that text where JSON, YAML 1.1 or Python reads it the same."""

from __future__ import annotations

import json
import re

_JSON = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_YAML = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?)")
_DIGITS = r"[0-9](?:_?[0-9])*"
_PYTHON = re.compile(rf"[-+]?(?:0|[1-9](?:_?[0-9])*|{_DIGITS}(?:\.[0-9]*)?[eE][-+]?[0-9]+|{_DIGITS}\.[0-9]*)")
_EXPONENT = re.compile(r"(-?[0-9]+)(\.[0-9]+)?[eE]([-+]?)([0-9]+)")
_LONGEST = 64


class _Spelled:
    text: str

    def __repr__(self) -> str:
        return in_python(self)  # type: ignore[arg-type]


class SpelledInt(_Spelled, int):
    """A whole number with its text, which may be that of a float (``5e8``)."""


class SpelledFloat(_Spelled, float):
    """A float with its text."""


def spelled(value: object, text: str) -> object:
    """Return a number with the text it was written as; anything else, and a number of which it is none, as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or len(text) > _LONGEST:
        return value
    try:
        if float(text) != value:
            return value
    except (ValueError, OverflowError):
        return value
    number = SpelledInt(value) if isinstance(value, int) else SpelledFloat(value)
    number.text = text.strip()
    return number


def whole(value: int) -> int:
    """Return a whole number without a text that some language reads as a float."""
    return int(value) if set(_text(value)) & set(".eE") else value


def in_json(value: float) -> str:
    """Return a number as JSON, in its own text where that is JSON; NaN and infinities as ``json`` writes them."""
    text = _text(value)
    for one in (text, _padded(text)):
        if _JSON.fullmatch(one):
            return one
    return json.dumps(value)


def in_yaml(value: float) -> str:
    """Return a number as YAML 1.1, which reads no ``2e-5`` as one: ``2.0e-5``."""
    text = _text(value)
    canonical = int.__repr__(value) if isinstance(value, int) else float.__repr__(value)
    for one in (text, _padded(text), _with_point(_padded(text)), canonical):
        if _YAML.fullmatch(one):
            return one
    return _with_point(canonical)


def in_python(value: float) -> str:
    """Return a number as Python, in its own text where that is Python."""
    text = _text(value)
    if _PYTHON.fullmatch(text):
        return text
    return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)


def _text(value: float) -> str:
    return value.text if isinstance(value, _Spelled) else ""


def _padded(text: str) -> str:
    """Return a text with digits around its point and no others than they: ``.5`` is ``0.5``, ``1_000`` is ``1000``."""
    text = text.replace("_", "").lstrip("+")
    text = re.sub(r"^(-?)\.", r"\g<1>0.", text)
    return re.sub(r"\.(?![0-9])", ".0", text)


def _with_point(text: str) -> str:
    """Return a text with the point and the sign of the exponent that YAML 1.1 asks for."""
    return _EXPONENT.sub(lambda found: f"{found[1]}{found[2] or '.0'}e{found[3] or '+'}{found[4]}", text)
