"""Markdown: a comment under a pull request, or a page beside an editor. The same comparison gives the same text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from dsmigrate.checking.formats.places import url as rule_url
from dsmigrate.checking.job import Checked
from dsmigrate.diff.changed import Outcome, Status
from dsmigrate.diff.formats.places import line, place, texts, url
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.document import Encoding
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say
from dsmigrate.rules import Finding
from dsmigrate.rules.context import UNKNOWN

_TITLES = {
    Severity.BREAKING: mark("Breaking"),
    Severity.WARNING: mark("Wants a look"),
    Severity.INFO: mark("Other effects"),
}
_LONGEST = 60
_NAMES = {
    Severity.BREAKING: (mark("breaking"), mark("breaking")),
    Severity.WARNING: (mark("wants a look"), mark("want a look")),
    Severity.INFO: (mark("other effect"), mark("other effects")),
    Severity.NONE: (mark("without effect"), mark("without effect")),
}
"""What one explanation, and what several of them, are called in a count."""

Link: TypeAlias = Callable[[str, int], str]
"""From a path and its one-based line to the address of that line."""

_MOVED = (Status.RENAMED, Status.COPIED, Status.UNCHANGED)

MARKER = "<!-- dsmigrate diff -->"
"""The first line of a comment under a pull request, by which the next run finds it."""


def render(compared: Compared, *, show_all: bool = False) -> str:
    """Return the report; what does nothing is folded away, open with ``show_all``."""
    heading = f"### {code(compared.old_name)} → {code(compared.new_name)}"
    return "\n".join((heading, "", *_lines(compared, show_all=show_all))) + "\n"


def render_all(
    outcomes: Sequence[Outcome],
    *,
    show_all: bool = False,
    link: Link | None = None,
    marker: bool = False,
    limit: int | None = None,
) -> str:
    """Return the report about the configs of a range: a line for each, and what is behind it folded away.

    Configs with something breaking are open. ``link`` gives the addresses of lines, ``marker`` puts ``MARKER`` on top.
    Where ``limit``, in characters, does not hold it all, what is said about the last configs is left to their lines.
    """
    head = [*((MARKER,) if marker else ()), say("## DeepSpeed configs"), ""]
    if not outcomes:
        return "\n".join((*head, say("No DeepSpeed config is changed."))) + "\n"
    rows = [_row(outcome) for outcome in outcomes]
    body = [_section(outcome, show_all=show_all, link=link) for outcome in outcomes]
    text = "\n".join((*head, *rows, *body)) + "\n"
    left = 0
    while limit is not None and len(text) > limit and body:
        body.pop()
        left += 1
        note = say(
            "\n*The details of {left} {en_word} do not fit here.*",
            left=left,
            en_word="config" if left == 1 else "configs",
        )
        text = "\n".join((*head, *rows, *body, note)) + "\n"
    return text if limit is None or len(text) <= limit else text[: limit - 2] + "…\n"


def _row(outcome: Outcome) -> str:
    moved = say(" ({what})", what=say(outcome.entry.status.value)) if outcome.entry.status in _MOVED else ""
    return f"- **{code(outcome.title)}**{moved}: {message(outcome.verdict)}"


def _section(outcome: Outcome, *, show_all: bool, link: Link | None) -> str:
    compared = outcome.compared
    if compared is None or not compared.result.explained:
        return ""
    opened = compared.result.worst is Severity.BREAKING or show_all
    summary = f"<code>{_html(outcome.title)}</code>: {_counts(compared)}"
    lines = _lines(compared, show_all=show_all, link=link, verdict=False)
    return "\n".join((f"\n<details{' open' if opened else ''}><summary>{summary}</summary>", *lines, "", "</details>"))


def _counts(compared: Compared) -> str:
    counts = dict.fromkeys(Severity, 0)
    for said in compared.result.explained:
        counts[said.severity] += 1
    return say(", ").join(f"{count} {say(_NAMES[severity][count != 1])}" for severity, count in counts.items() if count)


def _lines(compared: Compared, *, show_all: bool, link: Link | None = None, verdict: bool = True) -> Iterator[str]:
    result = compared.result
    if verdict:
        yield say("**{verdict}.**", verdict=message(result.verdict))
    for severity, title in _TITLES.items():
        said = [item for item in result.explained if item.severity is severity]
        if said:
            yield from ("", f"#### {say(title)}", "")
            for item in said:
                yield from _said(compared, item, link)
    quiet = [item for item in result.explained if item.severity is Severity.NONE]
    if quiet:
        title = say("{quiet} without effect", quiet=len(quiet))
        yield from ("", f"<details{' open' if show_all else ''}><summary>{title}</summary>", "")
        for item in quiet:
            yield from _said(compared, item, link)
        yield from ("", "</details>")
    yield from ("", f"<sub>{_read_as(compared)}</sub>")


def _said(compared: Compared, said: Explained, link: Link | None = None) -> Iterator[str]:
    """Yield one explanation as an item of a list, with the values of its keys below it."""
    effects = (
        "" if said.effects == (Effect.NONE,) else f" *{say(', ').join(say(effect.value) for effect in said.effects)}*"
    )
    yield f"- [{said.code}]({url(said.code)}){effects}: {message(said.message)}{_where(compared, said, link)}"
    for path in said.paths:
        change = compared.result.changes.get(path)
        if change is not None:
            yield f"  - {code(path)}: {_values(compared, change)}"
    if said.advice:
        yield f"  - → {message(said.advice)}"


def _where(compared: Compared, said: Explained, link: Link | None) -> str:
    """Return a link to the line of the new side that it is about, "" where there is none."""
    spot = place(compared, said)[1]
    if link is None or spot is None:
        return ""
    number = line(compared.new, spot)
    return say(" ([line {number}]({link}))", number=number, link=link(compared.new_name, number))


def _values(compared: Compared, change: Change) -> str:
    old, new = texts(compared, change)
    return f"{_text(old, change.old_meant)} → {_text(new, change.new_meant)}"


def _text(written: object, meant: object) -> str:
    """Return a value as the file has it, and what counts where it leaves the key out."""
    if written is not MISSING:
        return _code(written)
    if meant is MISSING or meant is None:
        return "–"
    return f"– ({say('decided at the start') if meant is UNKNOWN else _code(meant)})"


def _code(value: object) -> str:
    text = _plain(json_text(value))
    return code(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def code(text: str) -> str:
    """Return any text as code."""
    return f"`{_plain(text)}`"


def _plain(text: str) -> str:
    """Return a text that stays inside of its backticks and on its line."""
    return " ".join(text.replace("`", "'").split())


_SPAN = re.compile(r"(`[^`]+`)")
_ACTIVE = str.maketrans(
    {
        "\\": "\\\\",
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "@": "&#64;",
        "[": "\\[",
        "*": "\\*",
        "!": "&#33;",
        "#": "&#35;",
    }
)
"""What begins HTML, a mention, a link, a picture, emphasis or a reference."""


def message(text: str) -> str:
    """Return a message with its code in backticks, in which nothing that a config holds becomes Markdown or HTML."""
    single = re.sub(r"``+", "'", " ".join(text.split()))
    pieces = _SPAN.split(single)
    return "".join(piece if _SPAN.fullmatch(piece) else piece.translate(_ACTIVE).replace("`", "'") for piece in pieces)


def _html(text: str) -> str:
    return " ".join(html.escape(text).split())


def _read_as(compared: Compared) -> str:
    old, new = compared.old.known.version, compared.new.known.version
    release = f"DeepSpeed {new}" if old == new else f"DeepSpeed {old} → {new}"
    why = say(", {why}", why=message(compared.why_version)) if old != new else ""
    return say("{release}{why}, read by {consumer}", release=release, why=why, consumer=compared.new.consumer.title)


def finding(entry: Checked, found: Finding, link: Link | None) -> str:
    """Return a finding of a check in one line: code, place and message."""
    assert entry.document is not None  # noqa: S101 - where there are findings there is a document
    number = entry.document.position(found.start, Encoding.UTF32).line + 1
    place_text = say("{code} line {number}", code=code(entry.name), number=number)
    where = place_text if link is None else f"[{place_text}]({link(entry.name, number)})"
    return f"[{found.code}]({rule_url(found.code)}) {where}: {message(found.message)}"
