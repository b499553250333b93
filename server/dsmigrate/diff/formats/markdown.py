"""Markdown: a comment under a pull request, or a page beside an editor. The same comparison gives the same text."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.formats.places import url
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import json_text
from dsmigrate.rules.context import UNKNOWN

_TITLES = {
    Severity.BREAKING: "Breaking",
    Severity.WARNING: "Wants a look",
    Severity.INFO: "Other effects",
}
_LONGEST = 60


def render(compared: Compared, *, show_all: bool = False) -> str:
    """Return the report; what does nothing is folded away, open with ``show_all``."""
    return "\n".join(_lines(compared, show_all=show_all)) + "\n"


def _lines(compared: Compared, *, show_all: bool) -> Iterator[str]:
    result = compared.result
    yield f"### `{_plain(compared.old_name)}` → `{_plain(compared.new_name)}`"
    yield ""
    yield f"**{result.verdict}.**"
    for severity, title in _TITLES.items():
        said = [item for item in result.explained if item.severity is severity]
        if said:
            yield from ("", f"#### {title}", "")
            for item in said:
                yield from _said(compared, item)
    quiet = [item for item in result.explained if item.severity is Severity.NONE]
    if quiet:
        title = f"{len(quiet)} without effect"
        yield from ("", f"<details{' open' if show_all else ''}><summary>{title}</summary>", "")
        for item in quiet:
            yield from _said(compared, item)
        yield from ("", "</details>")
    yield from ("", f"<sub>{_read_as(compared)}</sub>")


def _said(compared: Compared, said: Explained) -> Iterator[str]:
    """Yield one explanation as an item of a list, with the values of its keys below it."""
    effects = "" if said.effects == (Effect.NONE,) else f" *{', '.join(effect.value for effect in said.effects)}*"
    yield f"- [{said.code}]({url(said.code)}){effects}: {said.message}"
    for path in said.paths:
        change = compared.result.changes.get(path)
        if change is not None:
            yield f"  - `{_plain(path)}`: {_values(change)}"
    if said.advice:
        yield f"  - → {said.advice}"


def _values(change: Change) -> str:
    return f"{_text(change.old, change.old_meant)} → {_text(change.new, change.new_meant)}"


def _text(written: object, meant: object) -> str:
    """Return a value as the file has it, and what counts where it leaves the key out."""
    if written is not MISSING:
        return _code(written)
    if meant is MISSING or meant is None:
        return "–"
    return f"– ({'decided at the start' if meant is UNKNOWN else _code(meant)})"


def _code(value: object) -> str:
    text = _plain(json_text(value))
    return f"`{text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}`"


def _plain(text: str) -> str:
    """Return a text that stays inside of its backticks and on its line."""
    return " ".join(text.replace("`", "'").split())


def _read_as(compared: Compared) -> str:
    old, new = compared.old.known.version, compared.new.known.version
    release = f"DeepSpeed {new}" if old == new else f"DeepSpeed {old} → {new}"
    return f"{release}, read by {compared.new.consumer.title}"
