"""What can be wrong with the text of a config, and for whom: DeepSpeed's own loader, or readers of strict JSON.

DeepSpeed reads with ``hjson.load`` and rejects duplicate keys (``deepspeed/runtime/config.py``); Transformers and
Accelerate read the same file with Python's ``json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag

from dsmigrate.languages import mark, say

MAX_DEPTH = 490
"""Levels of nesting that DeepSpeed's loader survives: two Python frames a level, 1000 frames, some taken already."""

_EXCERPT = 40


class Breaks(Flag):
    """Whose loader refuses the text."""

    HJSON = 1
    JSON = 2
    BOTH = 3


class Code(Enum):
    """The problems; the value is the stable name."""

    MISSING_KEY = "missing-key"
    MISSING_COLON = "missing-colon"
    MISSING_VALUE = "missing-value"
    UNEXPECTED_COLON = "unexpected-colon"
    UNEXPECTED_COMMA = "unexpected-comma"
    UNEXPECTED_CLOSING = "unexpected-closing"
    UNCLOSED = "unclosed"
    EXTRA_TEXT = "extra-text"
    RUNS_ON = "runs-on"
    UNTERMINATED_STRING = "unterminated-string"
    UNTERMINATED_MULTILINE = "unterminated-multiline"
    UNTERMINATED_COMMENT = "unterminated-comment"
    CONTROL_CHARACTER = "control-character"
    BAD_ESCAPE = "bad-escape"
    NEGATIVE_ESCAPE = "negative-escape"
    MULTILINE_ON_ONE_LINE = "multiline-on-one-line"
    EMPTY_AFTER_MARK = "empty-after-mark"
    NUMBER_TOO_LARGE = "number-too-large"
    NUMBER_TOO_LONG = "number-too-long"
    DUPLICATE_KEY = "duplicate-key"
    TOO_DEEP = "too-deep"
    COMMENT = "comment"
    TRAILING_COMMA = "trailing-comma"
    MISSING_COMMA = "missing-comma"
    UNQUOTED_KEY = "unquoted-key"
    QUOTELESS_STRING = "quoteless-string"
    CONSTANT = "constant"
    SINGLE_QUOTES = "single-quotes"
    MULTILINE_STRING = "multiline-string"
    NO_BRACES = "no-braces"
    BYTE_ORDER_MARK = "byte-order-mark"
    EMPTY = "empty"
    FOREIGN_ESCAPE = "foreign-escape"
    FOREIGN_DIGITS = "foreign-digits"
    FOREIGN_SPACE = "foreign-space"


_TABLE: dict[Code, tuple[Breaks, str]] = {
    Code.MISSING_KEY: (Breaks.BOTH, mark("a key belongs before {found}")),
    Code.MISSING_COLON: (Breaks.BOTH, mark("a colon belongs right after the key {found}")),
    Code.MISSING_VALUE: (Breaks.BOTH, mark("{found} has no value")),
    Code.UNEXPECTED_COLON: (Breaks.BOTH, mark("this colon belongs to no key")),
    Code.UNEXPECTED_COMMA: (Breaks.BOTH, mark("nothing stands before this comma")),
    Code.UNEXPECTED_CLOSING: (Breaks.BOTH, mark("{found} closes nothing")),
    Code.UNCLOSED: (Breaks.BOTH, mark("{found} is never closed")),
    Code.EXTRA_TEXT: (Breaks.BOTH, mark("{found} follows the end of the config")),
    Code.RUNS_ON: (Breaks.BOTH, mark("{found} has no quotes, so DeepSpeed reads the rest of the line as one string")),
    Code.UNTERMINATED_STRING: (Breaks.BOTH, mark("the string {found} is never ended")),
    Code.UNTERMINATED_MULTILINE: (Breaks.BOTH, mark("the ''' string is never ended")),
    Code.UNTERMINATED_COMMENT: (Breaks.BOTH, mark("this comment is never ended; */ ends it")),
    Code.CONTROL_CHARACTER: (Breaks.BOTH, mark("the character {found} has to be written as an escape in a string")),
    Code.BAD_ESCAPE: (Breaks.BOTH, mark("{found} is no escape sequence")),
    Code.NEGATIVE_ESCAPE: (Breaks.BOTH, mark("{found} is no escape sequence")),
    Code.MULTILINE_ON_ONE_LINE: (
        Breaks.BOTH,
        mark("DeepSpeed's loader fails on a ''' string in a text of one line; write it in double quotes"),
    ),
    Code.EMPTY_AFTER_MARK: (Breaks.BOTH, mark("a byte-order mark and nothing else is not an empty config; write {{}}")),
    Code.NUMBER_TOO_LARGE: (Breaks.HJSON, mark("{found} exceeds the range of a float; DeepSpeed's loader fails on it")),
    Code.NUMBER_TOO_LONG: (Breaks.BOTH, mark("{found} has more digits than Python converts to an integer")),
    Code.DUPLICATE_KEY: (
        Breaks.HJSON,
        mark("the key {found} occurs twice in this object; DeepSpeed rejects the config"),
    ),
    Code.TOO_DEEP: (
        Breaks.HJSON,
        f"nested deeper than about {MAX_DEPTH} levels, where DeepSpeed's loader raises RecursionError",
    ),
    Code.COMMENT: (Breaks.JSON, mark("a comment: strict JSON has none")),
    Code.TRAILING_COMMA: (Breaks.JSON, mark("a comma after the last entry: not strict JSON")),
    Code.MISSING_COMMA: (Breaks.JSON, mark("no comma between two entries: not strict JSON")),
    Code.UNQUOTED_KEY: (Breaks.JSON, mark("the key {found} has no double quotes: not strict JSON")),
    Code.QUOTELESS_STRING: (
        Breaks.JSON,
        mark("the string {found} has no quotes and takes the rest of its line, commas and all: not strict JSON"),
    ),
    Code.CONSTANT: (
        Breaks.JSON,
        mark("{found} is a string for DeepSpeed, a float for Python's json, and not strict JSON"),
    ),
    Code.SINGLE_QUOTES: (Breaks.JSON, mark("{found} has single quotes: not strict JSON")),
    Code.MULTILINE_STRING: (Breaks.JSON, mark("a ''' string: not strict JSON")),
    Code.NO_BRACES: (Breaks.JSON, mark("the config has no braces around it: not strict JSON")),
    Code.BYTE_ORDER_MARK: (Breaks.JSON, mark("the text starts with a byte-order mark, which strict JSON refuses")),
    Code.EMPTY: (Breaks.JSON, mark("an empty text is an empty config for DeepSpeed, and not strict JSON")),
    Code.FOREIGN_ESCAPE: (Breaks.JSON, mark("the escape {found} is not strict JSON")),
    Code.FOREIGN_DIGITS: (Breaks.JSON, mark("the number {found} has digits beyond 0 to 9: not strict JSON")),
    Code.FOREIGN_SPACE: (
        Breaks.JSON,
        mark("a blank other than space, tab and line end follows {found}: not strict JSON"),
    ),
}

FATAL = frozenset(code for code, (breaks, _) in _TABLE.items() if Breaks.HJSON in breaks)
"""The codes of what DeepSpeed's loader raises for."""

CRASHES = frozenset(
    {
        Code.UNTERMINATED_MULTILINE,
        Code.UNTERMINATED_COMMENT,
        Code.NUMBER_TOO_LARGE,
        Code.NUMBER_TOO_LONG,
        Code.NEGATIVE_ESCAPE,
        Code.MULTILINE_ON_ONE_LINE,
        Code.DUPLICATE_KEY,
    }
)
"""Those where the loader raises something other than HjsonDecodeError, so that it does not try a root scalar next."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: ``start`` and ``end`` are offsets in code points, ``breaks`` says whose loader refuses the text."""

    code: Code
    message: str
    start: int
    end: int
    breaks: Breaks

    @property
    def is_fatal(self) -> bool:
        """Whether DeepSpeed's loader raises."""
        return Breaks.HJSON in self.breaks


def problem(code: Code, text: str, start: int, end: int) -> Problem:
    """Return the problem of ``code`` at ``text[start:end]``."""
    breaks, template = _TABLE[code]
    found = text[start : min(end, start + _EXCERPT)]
    shown = f"{found!a}" if not found.isprintable() else found
    message = say(template, found=f"{shown}…" if end - start > _EXCERPT else shown)
    return Problem(code, message, start, end, breaks)
