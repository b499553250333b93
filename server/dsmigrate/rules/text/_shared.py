"""What a string was probably meant to be, when it is a string only because Hjson found no other use for the text."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator

from dsmigrate.document import Scalar, Style
from dsmigrate.knowledge import Key, Status
from dsmigrate.rules.context import Context, Entry


class Meant(enum.Enum):
    """What stands in the place of a value."""

    PLACEHOLDER = "placeholder"
    """Something that a shell script or a template fills in: ``${BATCH}``, ``{{ batch }}``, ``CONFIG_BATCH_SIZE,``."""
    LITERAL = "literal"
    """``True``, ``None`` … without quotes: Python's spelling of true, false and null."""
    NUMBER = "number"
    """Digits that are no number of Hjson: ``.5``, ``1_000``, ``0x10``, ``1e-5f``."""
    CONSTANT = "constant"
    """``NaN`` and the infinities."""
    RUNS_ON = "runs on"
    """A string without quotes that took the comma, comment or bracket behind it."""


LITERALS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "none": None}
_TEMPLATE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\{\{.*?\}\}|\{%.*?%\}|<%.*?%>|%\([^)]*\)[sdifg]|\Z(?!)")
_WHOLE = re.compile(r"<[A-Za-z][\w \-/.|]*>|@[A-Za-z_]\w*@|\$[A-Za-z_]\w*|__[A-Z][A-Z0-9_]*__|%[A-Z][A-Z0-9_]*%")
_SHOUTED = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+|(?:TODO|FIXME|FILL[ _-]?ME|XXX)\b.*")
_CAPITALS = re.compile(r"[A-Z]{2,}[A-Za-z0-9_]*")
_CONSTANT = re.compile(r"[-+]?(?:NaN|Infinity|nan|inf|Inf|NAN|INF)")
_NUMBER = re.compile(r"[-+]?(?:0[xXbBoO][0-9a-fA-F_]+|(?:\d[\d_ ]*)?\.?\d[\d_]*\.?(?:[eE][-+]?\d+)?[fFkKmMgG]?[bB]?)")
_PRODUCT = re.compile(r"\d[\d.e]*(?:\s*(?:\*\*?|\^|/)\s*\d[\d.e]*)+")
_TAIL = re.compile(r"\s*(?:,\s*)?(?:(?:#|//).*|/\*.*\*/\s*,?|[,}\]][,}\] ]*)$")


def meant(node: Scalar) -> Meant | None:
    """Return what a string stands for; None for a string that is one, and for anything else."""
    value = node.value()
    return _meant(value, bare=node.style is Style.BARE) if isinstance(value, str) else None


@functools.lru_cache(maxsize=256)
def _meant(value: str, *, bare: bool) -> Meant | None:
    word = without_tail(value) if bare else value
    if is_template(value) or is_template(word) or (bare and _SHOUTED.fullmatch(word)):
        return Meant.PLACEHOLDER
    if not bare:
        return None
    if word != value:
        return Meant.PLACEHOLDER if _CAPITALS.fullmatch(word) else Meant.RUNS_ON
    if _CONSTANT.fullmatch(word):
        return Meant.CONSTANT
    if word.lower() in LITERALS and word not in {"true", "false", "null"}:
        return Meant.LITERAL
    return Meant.NUMBER if _NUMBER.fullmatch(word) or _PRODUCT.fullmatch(word) else None


def is_explained(context: Context, key: Key | None, node: Scalar) -> bool:
    """Return whether a rule about texts says what a string stands for; a bare word is a text where one belongs."""
    what = meant(node)
    if _is_capitals(node) and is_filled_in(context):
        return True
    if what in {Meant.LITERAL, Meant.NUMBER}:
        return key is None or "string" not in key.type
    return what is not None


def is_template(word: str) -> bool:
    """Return whether a template or a shell would replace a part of ``word``."""
    return _TEMPLATE.search(word) is not None or _WHOLE.fullmatch(word) is not None


def without_tail(value: str) -> str:
    """Return a string without quotes up to the comma, comment or bracket that it swallowed."""
    return _TAIL.sub("", value).strip() if _TAIL.search(value) else value


def strings(context: Context, wanted: Meant) -> Iterator[tuple[Entry, Scalar]]:
    """Yield the members whose value is ``wanted``."""
    for entry, node, means in context.once(strings, lambda: tuple(_strings(context))):
        if means is wanted:
            yield entry, node


def _strings(context: Context) -> Iterator[tuple[Entry, Scalar, Meant]]:
    template = is_filled_in(context)
    for entry in context.entries:
        gone = entry.key is not None and entry.key.status is Status.REJECTED
        if gone or not isinstance(entry.node, Scalar):
            continue
        means = Meant.PLACEHOLDER if template and _is_capitals(entry.node) else meant(entry.node)
        if means is not None:
            yield entry, entry.node, means


def is_filled_in(context: Context) -> bool:
    """Return whether a file is a template: it has placeholders, so that other words in capitals are some too."""
    return context.once(
        is_filled_in,
        lambda: any(
            isinstance(entry.node, Scalar) and meant(entry.node) is Meant.PLACEHOLDER for entry in context.entries
        ),
    )


def _is_capitals(node: Scalar) -> bool:
    value = node.value()
    return isinstance(value, str) and "_" in value and _CAPITALS.fullmatch(without_tail(value)) is not None
