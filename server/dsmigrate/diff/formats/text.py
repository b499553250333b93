"""For people: the verdict, then each change with its values side by side and what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from dsmigrate.diff.formats.places import names, place, texts
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Change, Effect, Explained, Severity, Spot
from dsmigrate.document import Encoding
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN

Line: TypeAlias = tuple[tuple[str, str], ...]
"""Pieces of a line, each with its style in the words of rich; "" is none."""

_STYLES = {
    Severity.BREAKING: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFO: "bold cyan",
    Severity.NONE: "dim",
}
_LONGEST = 48
_ABSENT = "–"


def render(compared: Compared, *, show_all: bool = False) -> Iterator[Line]:
    """Yield the lines of the report; what does nothing is counted, and listed with ``show_all``."""
    result = compared.result
    yield (compared.old_name, "bold"), (" → ", ""), (compared.new_name, "bold")
    yield ((result.verdict, _STYLES[result.worst] if result.worst is not Severity.NONE else "bold green"),)
    shown = [said for said in result.explained if show_all or said.severity is not Severity.NONE]
    for said in shown:
        yield ()
        yield from _said(compared, said)
    yield ()
    yield from _hidden(compared, shown)
    yield _read_as(compared)


def _said(compared: Compared, said: Explained) -> Iterator[Line]:
    """Yield the keys with both values, then the message."""
    style = _STYLES[said.severity]
    effects = (
        "" if said.effects == (Effect.NONE,) else f" {say(', ').join(say(effect.value) for effect in said.effects)}"
    )
    yield (say(said.severity.value), style), (f"[{said.code}]", "dim"), (effects, ""), (_where(compared, said), "dim")
    for path in said.paths:
        change = compared.result.changes.get(path)
        if change is not None:
            yield _values(compared, path, change)
    yield ((f"  {said.message}", ""),)
    if said.advice:
        yield ("  → ", "green"), (said.advice, "")


def _values(compared: Compared, path: str, change: Change) -> Line:
    name = " → ".join(names(path, change))
    before, after = texts(compared, change)
    old, new = value_text(before, change.old_meant), value_text(after, change.new_meant)
    return (f"  {name}: ", "bold"), (old, "red"), (" → ", ""), (new, "green")


def value_text(written: object, meant: object) -> str:
    """Return a value as the file has it, and what counts where it leaves the key out."""
    if written is MISSING:
        if meant is MISSING or meant is None:
            return _ABSENT
        return f"{_ABSENT} ({say('decided at the start') if meant is UNKNOWN else _short(meant)})"
    return _short(written)


def _short(value: object) -> str:
    text = json_text(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _where(compared: Compared, said: Explained) -> str:
    """Return the lines on both sides: "  old:3 new:5"."""
    old, new = place(compared, said)
    lines = [
        f"{name}:{_line(view, spot)}"
        for name, view, spot in ((compared.old_name, compared.old, old), (compared.new_name, compared.new, new))
        if spot is not None
    ]
    return f"  {lines[-1]}" if lines else ""


def _line(view: View, spot: Spot) -> int:
    return view.document.position(spot.start, Encoding.UTF32).line + 1


def _hidden(compared: Compared, shown: list[Explained]) -> Iterator[Line]:
    hidden = len(compared.result.explained) - len(shown)
    if hidden:
        yield (
            (
                say(
                    "{hidden} {en_do} nothing; --all lists them",
                    hidden=hidden,
                    en_do="change does" if hidden == 1 else "changes do",
                ),
                "dim",
            ),
        )


def _read_as(compared: Compared) -> Line:
    old, new = compared.old.known.version, compared.new.known.version
    release = f"DeepSpeed {new}" if old == new else f"DeepSpeed {old} → {new}"
    why = say(", {why}", why=compared.why_version) if compared.why_version else ""
    who = say(
        "read by {consumer}, {why_consumer}", consumer=compared.new.consumer.title, why_consumer=compared.why_consumer
    )
    return ((say("{release}{why}; {who}", release=release, why=why, who=who), "dim"),)
