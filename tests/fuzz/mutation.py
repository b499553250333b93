"""Texts made of other texts: pieces cut, doubled, swapped, replaced by what parsers stumble over."""

from __future__ import annotations

import random

ODD = (
    "1e999", "-1e999", "NaN", "Infinity", "1" * 5000, "0x10", "1_000", "²", "٣", "-0", "1e-400", "true",
    "null", '"auto"', '""', "[]", "{}", "[" * 600, "{" * 600, '{"a": ' * 600, "\x00", "\x1b[31m",
    "\u202e", "\ud800", "\ufeff", "\r", "\r\n", "\t", "\x85", "//", "/*", "#", "'''", '"', "'", "\\",
    "\\u", "\\ud83d", ",", ":", "}", "]", ")", "=", "%", "$", "`", "$(", "${", "&&", "|", "<<", "&a",
    "*a", "!!python/object:x", "---", "- ", "? ", "lambda: 0", "await ", "yield ", ":=", "print 1",
    "exec 'x'", "é", "模型", "👩‍💻", "%s", "{0}", "{x}", "2**1000000", "10**400", "float('inf')",
    "a" * 3000, "  " * 300, "-1", "0", "2.5",
)  # fmt: skip
"""Pieces that something has stumbled over, or may."""


VALUES = (
    "0", "1", "-1", "2.5", "1e9", "1e308", "10", "3", "True", "None", "true", "null", '"auto"', '""', '"cpu"', '"fp16"',
    "[]", "{}", "[1, 2]", '{"enabled": true}', "1" * 400, "1e-300", "args", "model", "loss", "x", "0x7f", "not x",
    "-2", "7",
)  # fmt: skip
"""Pieces that stand where a value stands without breaking what is around it, most of the time."""


def mutated(chance: random.Random, text: str, others: list[str]) -> str:
    """Return a text with some of its pieces changed."""
    ways = _GENTLE if chance.random() < 0.7 else _WAYS
    for _ in range(chance.choice((1, 1, 2, 3, 5))):
        text = chance.choice(ways)(chance, text, others)
    return text


def _span(chance: random.Random, text: str) -> tuple[int, int]:
    start = chance.randrange(len(text) + 1)
    return start, min(len(text), start + chance.choice((0, 1, 1, 3, 10, 40, 200)))


def _cut(chance: random.Random, text: str, _: list[str]) -> str:
    start, end = _span(chance, text)
    return text[:start] + text[end:]


def _doubled(chance: random.Random, text: str, _: list[str]) -> str:
    start, end = _span(chance, text)
    return text[:end] + text[start:end] * chance.choice((1, 1, 2, 50)) + text[end:]


def _odd(chance: random.Random, text: str, _: list[str]) -> str:
    start, end = _span(chance, text)
    return text[:start] + chance.choice(ODD) + text[end:]


def _odd_token(chance: random.Random, text: str, _: list[str]) -> str:
    return _with_token(chance, text, chance.choice(ODD))


def _value(chance: random.Random, text: str, _: list[str]) -> str:
    return _with_token(chance, text, chance.choice(VALUES))


def _without_line(chance: random.Random, text: str, _: list[str]) -> str:
    lines = text.split("\n")
    del lines[chance.randrange(len(lines))]
    return "\n".join(lines)


def _neighbours(chance: random.Random, text: str, _: list[str]) -> str:
    """Let two lines of one indentation change places."""
    lines = text.split("\n")
    number = chance.randrange(len(lines))
    depth = len(lines[number]) - len(lines[number].lstrip())
    alike = [other for other, line in enumerate(lines) if len(line) - len(line.lstrip()) == depth]
    other = chance.choice(alike)
    lines[number], lines[other] = lines[other], lines[number]
    return "\n".join(lines)


def _with_token(chance: random.Random, text: str, token: str) -> str:
    """Replace a whole word or number, which keeps what is around it valid more often."""
    start = chance.randrange(len(text) + 1)
    while start < len(text) and not text[start].isalnum():
        start += 1
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] in "._-"):
        end += 1
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "._-"):
        start -= 1
    return text[:start] + token + text[end:]


def _line(chance: random.Random, text: str, others: list[str]) -> str:
    """Put a line of another text in, or take one out, or change the indentation of one."""
    lines = text.split("\n")
    number = chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines.insert(number, chance.choice(chance.choice(others).split("\n")))
        case 1:
            del lines[number]
        case 2:
            lines[number] = chance.choice(("", "  ", "    ", "\t")) + lines[number].lstrip()
        case _:
            other = chance.randrange(len(lines))
            lines[number], lines[other] = lines[other], lines[number]
    return "\n".join(lines)


def _spliced(chance: random.Random, text: str, others: list[str]) -> str:
    other = chance.choice(others)
    return text[: chance.randrange(len(text) + 1)] + other[chance.randrange(len(other) + 1) :]


def _renamed(chance: random.Random, text: str, _: list[str]) -> str:
    """Give one name the place of another."""
    names = [word for word in text.replace(".", " ").replace("(", " ").split() if word.isidentifier()]
    return text.replace(chance.choice(names), chance.choice(names)) if names else text


_GENTLE = (_value, _value, _value, _without_line, _neighbours, _renamed, _renamed)
_WAYS = (_cut, _doubled, _odd, _odd_token, _odd_token, _line, _line, _spliced, _renamed)
