"""Markdown: a comment under a pull request, or a page beside an editor. The same comparison gives the same text."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from dsmigrate.checking.formats.places import url as rule_url
from dsmigrate.checking.job import Checked
from dsmigrate.diff.changed import Outcome, Status
from dsmigrate.diff.formats.places import line, names, place, texts, url
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
    Severity.WARNING: mark("Needs review"),
    Severity.INFO: mark("Other effects"),
}
_LONGEST = 60
_NAMES = {
    Severity.BREAKING: (mark("breaking"), mark("breaking")),
    Severity.WARNING: (mark("needs review"), mark("need review")),
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
    return "\n".join((heading, "", *_lines([compared], show_all=show_all))) + "\n"


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
    rows = _rows(outcomes)
    told = [(group, _section(group, show_all=show_all, link=link)) for group in _alike(outcomes)]
    groups, body = [group for group, section in told if section], [section for _, section in told if section]
    text = "\n".join((*head, *rows, *body)) + "\n"
    left = 0
    while limit is not None and len(text) > limit and body:
        body.pop()
        left += len(groups[len(body)])
        note = say(
            "\n*The details of {left} {en_word} do not fit here.*",
            left=left,
            en_word="config" if left == 1 else "configs",
        )
        text = "\n".join((*head, *rows, *body, note)) + "\n"
    return text if limit is None or len(text) <= limit else text[: limit - 2] + "…\n"


def _rows(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a line for each verdict, with the configs that it is about."""
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        moved = say(" ({what})", what=say(outcome.entry.status.value)) if outcome.entry.status in _MOVED else ""
        found.setdefault(message(outcome.verdict), []).append(f"**{code(outcome.title)}**{moved}")
    return [f"- {say(', ').join(titles)}: {verdict}" for verdict, titles in found.items()]


def _alike(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Return the outcomes with those together of which the same is said."""
    groups: dict[object, list[Outcome]] = {}
    for outcome in outcomes:
        compared = outcome.compared
        said = outcome.entry.path if compared is None else tuple(_lines([compared], show_all=False))
        groups.setdefault(said, []).append(outcome)
    return list(groups.values())


def _section(outcomes: Sequence[Outcome], *, show_all: bool, link: Link | None) -> str:
    """Return what is folded away about configs of which the same is said."""
    every = [outcome.compared for outcome in outcomes if outcome.compared is not None]
    if not every or not every[0].result.explained:
        return ""
    opened = every[0].result.worst is Severity.BREAKING or show_all
    names = say(", ").join(f"<code>{_html(outcome.title)}</code>" for outcome in outcomes)
    lines = _lines(every, show_all=show_all, link=link, verdict=False)
    begin = f"\n<details{' open' if opened else ''}><summary>{names}: {_counts(every[0])}</summary>"
    return "\n".join((begin, *lines, "", "</details>"))


def _counts(compared: Compared) -> str:
    counts = dict.fromkeys(Severity, 0)
    for said in compared.result.explained:
        counts[said.severity] += 1
    counts[Severity.NONE] = _edits([said for said in compared.result.explained if said.severity is Severity.NONE])
    return say(", ").join(f"{count} {say(_NAMES[severity][count != 1])}" for severity, count in counts.items() if count)


def _lines(
    every: Sequence[Compared], *, show_all: bool, link: Link | None = None, verdict: bool = True
) -> Iterator[str]:
    """Yield what is said of comparisons, the same of each; the values of a key stand under what names them first."""
    compared, result = every[0], every[0].result
    shown: set[str] = set()
    if verdict:
        yield say("**{verdict}.**", verdict=message(result.verdict))
    for severity, title in _TITLES.items():
        said = [item for item in result.explained if item.severity is severity]
        if said:
            yield from ("", f"#### {say(title)}", "")
            for item in said:
                yield from _said(every, item, link, shown)
    quiet = _together(item for item in result.explained if item.severity is Severity.NONE)
    if quiet:
        folded = len(quiet) < len(result.explained)  # alone it is in the fold of its config
        if folded:
            title = say("{quiet} without effect", quiet=_edits(quiet))
            yield from ("", f"<details{' open' if show_all else ''}><summary>{title}</summary>")
        yield ""
        for item in quiet:
            yield from _said(every, item, link, shown)
        if folded:
            yield from ("", "</details>")
    yield from ("", f"<sub>{_read_as(compared)}</sub>")


def _together(found: Iterable[Explained]) -> list[Explained]:
    """Return explanations with those in one of which the same is said."""
    groups: dict[tuple[str, str, str], Explained] = {}
    for one in found:
        about = one.code, one.message, one.advice
        there = groups.get(about)
        groups[about] = one if there is None else replace(there, paths=(*there.paths, *one.paths))
    return list(groups.values())


def _edits(found: Sequence[Explained]) -> int:
    return len({path for one in found for path in one.paths})


def _said(every: Sequence[Compared], said: Explained, link: Link | None, shown: set[str]) -> Iterator[str]:
    """Yield one explanation as an item of a list, with the values of its keys below it that are not ``shown`` yet."""
    compared = every[0]
    effects = (
        "" if said.effects == (Effect.NONE,) else f" *{say(', ').join(say(effect.value) for effect in said.effects)}*"
    )
    yield f"- [{said.code}]({url(said.code)}){effects}: {message(said.message)}{_where(every, said, link)}"
    for path in said.paths:
        change = compared.result.changes.get(path)
        if change is not None and path not in shown:
            yield f"  - {' → '.join(map(code, names(path, change)))}: {_values(compared, change)}"
    shown.update(said.paths)
    if said.advice:
        yield f"  - → {message(said.advice)}"


def _where(every: Sequence[Compared], said: Explained, link: Link | None) -> str:
    """Return links to the lines of the new sides that it is about, "" where there are none."""
    if link is None:
        return ""
    found = []
    for compared in every:
        spot = place(compared, said)[1]
        if spot is not None:
            number = line(compared.new, spot)
            title = say("line {number}", number=number)
            if len(every) > 1:
                title = say("{code} line {number}", code=code(posixpath.basename(compared.new_name)), number=number)
            found.append(f"[{title}]({link(compared.new_name, number)})")
    return f" ({say(', ').join(found)})" if found else ""


def _values(compared: Compared, change: Change) -> str:
    old, new = texts(compared, change)
    before, after = _text(old, change.old_meant), _text(new, change.new_meant)
    return after if before == after else f"{before} → {after}"


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


def finding(places: Sequence[tuple[Checked, Finding]], link: Link | None) -> str:
    """Return a finding of checks in one line: code, the places where it is the same, and message."""
    found = places[0][1]
    where = say(", ").join(_at(entry, one, link) for entry, one in places)
    return f"[{found.code}]({rule_url(found.code)}) {where}: {message(found.message)}"


def _at(entry: Checked, found: Finding, link: Link | None) -> str:
    assert entry.document is not None  # noqa: S101 - where there are findings there is a document
    number = entry.document.position(found.start, Encoding.UTF32).line + 1
    title = say("{code} line {number}", code=code(entry.name), number=number)
    return title if link is None else f"[{title}]({link(entry.name, number)})"
