"""Shell text as commands of words with positions: as much of the grammar as it takes to be sure, the rest marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|\(([A-Za-z_]\w*)\)|([A-Za-z_]\w*))")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPERATORS = ("&&", "||", ";;", "|&", "&>>", "&>", ">>", ">&", "<<<", "<<-", "<<", "<&", "<>", ">|",
              "&", "|", ";", "(", ")", "<", ">", "\n")  # fmt: skip
_REDIRECTIONS = frozenset({"&>>", "&>", ">>", ">&", "<<<", "<&", "<>", ">|", "<", ">"})
_RESERVED = frozenset(
    {"if", "then", "elif", "else", "while", "until", "do", "{", "}", "!", "time", "fi", "done", "esac"}
)
_END_OF_WORD = frozenset(" \t\r\n;&|()<>")

Piece = str | tuple[str]
"""Literal text, or the name of a variable; ``("",)`` for an expansion that is not followed."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command, between two offsets of the file; ``quoted`` where quotes are around all of it."""

    start: int
    end: int
    text: str
    pieces: tuple[Piece, ...]
    quoted: bool = False

    @property
    def value(self) -> str | None:
        """What the shell makes of the word; None where it expands something."""
        if all(isinstance(piece, str) for piece in self.pieces):
            return "".join(piece for piece in self.pieces if isinstance(piece, str))
        return None

    def expanded(self, variables: Mapping[str, str | None]) -> str | None:
        """What the shell makes of it where these variables are known; None where it expands something else."""
        found = [piece if isinstance(piece, str) else variables.get(piece[0]) for piece in self.pieces]
        return None if any(part is None for part in found) else "".join(part or "" for part in found)

    @property
    def assigns(self) -> str:
        """The variable that the word would set as the first of a command, "" where it has not that form."""
        match = _ASSIGNMENT.match(self.text)
        return match[0].rstrip("+=") if match else ""


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words, assignments in front included. ``ending`` is the operator behind it."""

    words: tuple[Word, ...]
    ending: str = ""

    @property
    def start(self) -> int:
        """Where its first word begins."""
        return self.words[0].start

    @property
    def end(self) -> int:
        """Where its last word ends."""
        return self.words[-1].end


@dataclass(slots=True)
class Scanned:
    """The commands of a text, and the stretches (start, end) of comments and of what could not be read as commands."""

    commands: list[Command] = field(default_factory=list)
    comments: list[tuple[int, int]] = field(default_factory=list)
    unread: list[tuple[int, int]] = field(default_factory=list)


def scan(text: str, start: int = 0, end: int | None = None) -> Scanned:
    """Read the shell text between two offsets. Never fails: from an open quote on, the text counts as unread."""
    return _Scanner(text, start, len(text) if end is None else end).run()


class _Scanner:
    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.at, self.end = text, start, end
        self.found = Scanned()
        self.words: list[Word] = []
        self.heredocs: list[tuple[str, bool]] = []
        self.skip_word = False  # the next word is a file of a redirection

    def run(self) -> Scanned:
        while self.at < self.end:
            char = self.text[self.at]
            if char in " \t\r":
                self.at += 1
            elif self.text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = self.text.index("\n", self.at) + 1
            elif char == "#":
                stop = self._line_end()
                self.found.comments.append((self.at, stop))
                self.at = stop
            elif char in _END_OF_WORD or self.text.startswith("&>", self.at):
                self._operator()
            else:
                begun = self.at
                word = self._word()
                if word is None:
                    self._close("")
                    self.found.unread.append((self.text.rfind("\n", 0, begun) + 1, self.end))
                    self.at = self.end
                    break
                self._add(word)
        self._close("")
        return self.found

    def _line_end(self) -> int:
        stop = self.text.find("\n", self.at, self.end)
        return self.end if stop < 0 else stop

    def _operator(self) -> None:
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                if operator in {"<<", "<<-"}:
                    self._heredoc(tabs=operator == "<<-")
                elif operator in _REDIRECTIONS:
                    if self.words and self.words[-1].end == self.at - len(operator) and self.words[-1].text.isdecimal():
                        self.words.pop()  # the 2 of 2>&1
                    self.skip_word = True
                else:
                    self._close(operator)
                    if operator == "\n":
                        self._skip_heredocs()
                return

    def _add(self, word: Word) -> None:
        if self.skip_word:
            self.skip_word = False
        elif self.words or word.text not in _RESERVED:
            self.words.append(word)

    def _close(self, ending: str) -> None:
        if self.words:
            self.found.commands.append(Command(tuple(self.words), ending))
        self.words = []
        self.skip_word = False

    def _heredoc(self, *, tabs: bool) -> None:
        while self.at < self.end and self.text[self.at] in " \t":
            self.at += 1
        word = self._word()
        if word is not None:
            self.heredocs.append((word.value or word.text, tabs))

    def _skip_heredocs(self) -> None:
        for name, tabs in self.heredocs:
            begun = self.at
            while self.at < self.end:
                stop = self._line_end()
                line = self.text[self.at : stop].rstrip("\r")
                self.at = min(stop + 1, self.end)
                if (line.lstrip("\t") if tabs else line) == name:
                    break
            self.found.unread.append((begun, self.at))
        self.heredocs = []

    def _word(self) -> Word | None:
        """The word here; None where a quote or a bracket stays open."""
        begun, pieces = self.at, list[Piece]()
        while self.at < self.end and self.text[self.at] not in _END_OF_WORD:
            char = self.text[self.at]
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                if following == "\n" or self.text.startswith("\\\r\n", self.at):
                    break
                pieces.append(following)
                self.at += 2
            elif char == "'":
                stop = self.text.find("'", self.at + 1, self.end)
                if stop < 0:
                    return None
                pieces.append(self.text[self.at + 1 : stop])
                self.at = stop + 1
            elif char == '"':
                if not self._double_quoted(pieces):
                    return None
            elif char in "$`":
                if not self._expansion(pieces):
                    return None
            else:
                pieces.append(char)
                if char in "*?[~" and not (char == "[" and self.at == begun):
                    pieces.append(("",))  # a pattern: what it becomes depends on the files there are
                self.at += 1
        raw = self.text[begun : self.at]
        quoted = len(raw) > 1 and raw[0] in "\"'" and raw.find(raw[0], 1) == len(raw) - 1
        return Word(begun, self.at, raw, tuple(pieces), quoted)

    def _double_quoted(self, pieces: list[Piece]) -> bool:
        self.at += 1
        while self.at < self.end:
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return True
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                pieces.append("" if following == "\n" else following if following in '$`"\\' else "\\" + following)
                self.at += 2
            elif char in "$`":
                if not self._expansion(pieces):
                    return False
            else:
                pieces.append(char)
                self.at += 1
        return False

    def _expansion(self, pieces: list[Piece]) -> bool:
        variable = _VARIABLE.match(self.text, self.at, self.end)
        if variable:
            pieces.append((variable[1] or variable[2] or variable[3],))
            self.at = variable.end()
            return True
        pieces.append(("",))
        if self.text[self.at] == "`":
            stop = self.text.find("`", self.at + 1, self.end)
            self.at = stop + 1
            return stop >= 0
        if self.text[self.at + 1 : self.at + 2] in {"(", "{"}:
            stop = _closing(self.text, self.at + 1, self.end)
            self.at = stop + 1
            return stop >= 0
        self.at += 2  # $@, $1, $$
        return True


def _closing(text: str, at: int, end: int) -> int:
    """Where the bracket at an offset is closed, quotes inside left out; -1 where it stays open."""
    pairs, depth = {"(": ")", "{": "}"}, 0
    opening, closing = text[at], pairs[text[at]]
    while at < end:
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "'":
            at = text.find("'", at + 1, end)
            if at < 0:
                return -1
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return -1


def assignments(commands: list[Command]) -> Iterator[tuple[str, Word]]:
    """Every variable that a command on its own sets, or ``export`` and its like, with the word that does."""
    for command in commands:
        words = command.words
        if words[0].text in {"export", "readonly", "local", "declare", "typeset", "set", "ENV", "ARG"}:
            words = words[1:]
        elif not all(word.assigns for word in words):
            continue
        for word in words:
            if word.assigns:
                yield word.assigns, word


def constants(commands: list[Command]) -> dict[str, str]:
    """The variables that are set just once, to a value that is known without running anything."""
    seen: dict[str, list[Word]] = {}
    for name, word in assignments(commands):
        seen.setdefault(name, []).append(word)
    known: dict[str, str] = {}
    for name, words in seen.items():
        if len(words) == 1 and "+=" not in words[0].text[: len(name) + 2]:
            value = words[0].expanded(known)
            if value is not None:
                known[name] = value.partition("=")[2]
    loops = {c.words[1].text for c in commands if len(c.words) > 1 and c.words[0].text in {"for", "read", "select"}}
    return {name: value for name, value in known.items() if name not in loops}
