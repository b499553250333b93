"""What is known of a text of which parts are not known: ``f"cuda:{rank}"`` is no ``"cpu"``, and has ``"cuda"`` in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import Formatter

from dsmigrate.codemod.analysis.values import Const, Expr, Value

_CONVERSION = re.compile(r"%(?:\(\w*\))?[-+ #0]*[\d*]*(?:\.[\d*]+)?[a-zA-Z]")


def contains(text: Value, part: str) -> bool | None:
    """Whether a text has a part in it; None where that is not known."""
    known = _parts(text)
    return True if any(part in one for one in known if one is not None) else None


def begins(text: Value, start: str) -> bool | None:
    """Whether a text begins in a way."""
    known = _parts(text)
    return _agrees(known[0], start, str.startswith) if known else None


def ends(text: Value, end: str) -> bool | None:
    """Whether a text ends in a way."""
    known = _parts(text)
    return _agrees(known[-1], end, str.endswith) if known else None


def equals(text: Value, other: str) -> bool | None:
    """Whether a text is another: False where its known ends tell, else None."""
    known = _parts(text)
    if not known:
        return None
    first, last = known[0] or "", known[-1] or ""
    return None if other.startswith(first) and other.endswith(last) else False


def kind_of_device(name: Value) -> str | None:
    """The part of a device's name before its number: ``cuda`` of ``f"cuda:{rank}"``."""
    known = _parts(name)
    kind, colon, _ = (known[0] or "").partition(":") if known else ("", "", "")
    return kind if colon or (len(known) == 1 and kind) else None


def _agrees(known: str | None, asked: str, test: object) -> bool | None:
    assert callable(test)
    if known is None:
        return None
    return True if test(known, asked) else None if test(asked, known) else False


def _parts(text: Value) -> list[str | None]:
    """The parts of a text in order, those that are not known as None; nothing where it may be no text at all."""
    found = list(_split(text))
    joined: list[str | None] = []
    for part in found:
        if part is not None and joined and joined[-1] is not None:
            joined[-1] += part
        else:
            joined.append(part)
    return joined if any(part is not None for part in joined) else []


def _split(text: Value) -> Iterator[str | None]:
    match text:
        case Const(value=str(whole)):
            yield whole
        case Expr(op="text", args=(Const(value=str(template)), "%", *_)):
            yield from _between(_CONVERSION.split(template.replace("%%", "\0")), "\0", "%")
        case Expr(op="text", args=parts):
            for part in parts:
                yield from _split(part) if isinstance(part, Const) else (None,)
        case Expr(op="+", args=(left, right)):
            yield from _split(left)
            yield from _split(right)
        case Expr(op="method", args=(Const(value=str(template)), "format", *_)):
            try:
                pieces = list(Formatter().parse(template))
            except ValueError:
                yield None
                return
            for literal, field, _, _ in pieces:
                yield literal
                if field is not None:
                    yield None
        case _:
            yield None


def _between(parts: list[str], mark: str, meaning: str) -> Iterator[str | None]:
    for index, part in enumerate(parts):
        if index:
            yield None
        yield part.replace(mark, meaning)
