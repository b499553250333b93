"""From a dictionary in Python to text of the same length that reads as a config."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dsmigrate.editing.python.tokens import Token

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r"""'(?:[^'"\\\r\n]|\\["\\/bfnrt])*'|"(?:[^"\\\r\n]|\\["\\/bfnrt])*\"""")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_BLANK = re.compile(r"[^\r\n]")
_DEEPEST = 64


@dataclass(slots=True)
class Masked:
    """The masked script, where its dictionary is, and what in it is no literal.

    ``unknown`` holds start and end of each expression, in whose place a number stands.
    """

    text: str
    start: int
    end: int
    unknown: list[tuple[int, int]] = field(default_factory=list)
    is_partial: bool = False


def mask(text: str, found: Sequence[Token], index: int) -> Masked:
    """Return the dictionary whose opening brace is token ``index``; comments are not among the tokens."""
    masker = _Masker(text, found, index)
    masker.container(0)
    end = masker.reached
    start = found[index].start
    blank = _BLANK.sub(" ", text[:start])
    rest = _BLANK.sub(" ", text[end:])
    body = "".join(masker.body)
    return Masked(f"{blank}{body}{rest}", start, end, masker.unknown, masker.is_partial)


class _Masker:
    """Walks the tokens of one dictionary and writes its mask."""

    def __init__(self, text: str, found: Sequence[Token], index: int) -> None:
        self.text, self.found, self.index = text, found, index
        self.base = self.reached = found[index].start
        self.body: list[str] = []
        self.unknown: list[tuple[int, int]] = []
        self.is_partial = False

    def write(self, end: int, replacement: str) -> None:
        """Write ``replacement`` for the text up to ``end``, which has its length."""
        self.body.append(replacement)
        self.reached = end

    def blanks(self, end: int) -> None:
        """Write blanks up to ``end``; line ends stay."""
        self.write(end, _BLANK.sub(" ", self.text[self.reached : end]))

    def take(self, replacement: str | None = None) -> None:
        """Write the next token, or what stands for it, behind the blanks before it."""
        token = self.found[self.index]
        self.blanks(token.start)
        self.write(token.end, token.text if replacement is None else replacement)
        self.index += 1

    def peek(self, ahead: int = 0) -> Token | None:
        """Return a token to come, None behind the last."""
        place = self.index + ahead
        return self.found[place] if place < len(self.found) else None

    def container(self, depth: int) -> None:
        """Write a dictionary or a list, from its opening bracket to its closing one or to the end of the text."""
        is_dict = self.found[self.index].text == "{"
        self.take("{" if is_dict else "[")
        while (token := self.peek()) is not None and token.kind != "close":
            if token.text == ",":
                self.take()
            elif token.text in {"*", "**"} or (is_dict and not self._starts_member(token)):
                self._drop()
            elif is_dict:
                self.take()
                self._value_of_member(depth)
            else:
                self._value(depth)
        if token is not None:
            self.take("}" if is_dict else "]")

    def _starts_member(self, token: Token) -> bool:
        """Return whether a plain text comes, as a key does; one that is still being typed counts."""
        after = self.peek(1)
        plain = token.kind == "string" and token.text[0] in "'\""
        return plain and (after is None or after.text in {":", ","} or after.kind in {"close", "string"})

    def _value_of_member(self, depth: int) -> None:
        token = self.peek()
        if token is not None and token.text == ":":
            self.take()
            after = self.peek()
            if after is not None and after.text != "," and after.kind != "close":
                self._value(depth)

    def _value(self, depth: int) -> None:
        token = self.found[self.index]
        end = self._end_of_expression()
        length = end - self.index
        if depth < _DEEPEST and self._is_container(token, end):
            self.container(depth + 1)
        elif length == 1 and token.text in _WORDS:
            self.take(_WORDS[token.text])
        elif length == 1 and (_NUMBER.fullmatch(token.text) or self._is_plain(token)):
            self.take()
        elif length == 2 and token.text == "-" and _NUMBER.fullmatch(self.found[self.index + 1].text):
            self.take() if self.found[self.index + 1].start == token.end else self._hide(end)
            if self.index < end:
                self.take()
        else:
            self._hide(end)

    def _is_container(self, token: Token, end: int) -> bool:
        """Return whether a dictionary, a list or a tuple comes, and nothing behind it."""
        whole = token.text in {"{", "["} and self._closes_at(self.index) >= end - 1
        return whole or (token.text == "(" and self._is_tuple(end))

    def _is_plain(self, token: Token) -> bool:
        """Return whether a string is JSON's too; one without its closing quote is, while it is typed."""
        closed = len(token.text) > 1 and token.text[-1] == token.text[0]
        return token.kind == "string" and bool(_STRING.fullmatch(token.text) if closed else token.text[0] in "'\"")

    def _is_tuple(self, end: int) -> bool:
        inner = self.found[self.index + 1 : end - 1]
        depth = 0
        for token in inner:
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            if token.text == "," and depth == 0:
                return self._closes_at(self.index) == end - 1
        return False

    def _hide(self, end: int) -> None:
        """Write a number for an expression, as long as its first line."""
        first, last = self.found[self.index], self.found[end - 1]
        self.blanks(first.start)
        whole = self.text[first.start : last.end]
        line = len(whole.splitlines()[0])
        self.unknown.append((first.start, last.end))
        self.write(last.end, "1" * line + _BLANK.sub(" ", whole[line:]))
        self.index = end

    def _drop(self) -> None:
        """Write blanks for a member that is unpacked or whose key is an expression, with the comma behind it."""
        self.is_partial = True
        end = self._end_of_expression()
        token = self.found[end] if end < len(self.found) else None
        stop = end + 1 if token is not None and token.text == "," else end
        self.blanks(self.found[max(stop, self.index + 1) - 1].end)
        self.index = max(stop, self.index + 1)

    def _end_of_expression(self) -> int:
        """Return the index behind the expression that starts here: of its comma, its container's end, or the text's."""
        depth, index = 0, self.index
        while index < len(self.found):
            token = self.found[index]
            if depth == 0 and index > self.index and (token.text == "," or token.kind == "close"):
                return index
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            index += 1
        return index

    def _closes_at(self, index: int) -> int:
        depth = 0
        for place in range(index, len(self.found)):
            depth += {"open": 1, "close": -1}.get(self.found[place].kind, 0)
            if depth == 0:
                return place
        return len(self.found)
