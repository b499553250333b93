"""The review of a merge: what each side does, where they disagree, and what only both together break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from dsmigrate.diff.formats import json as single
from dsmigrate.diff.formats import markdown, text
from dsmigrate.diff.formats.text import Line, value_text
from dsmigrate.diff.model import Change
from dsmigrate.diff.three import Conflict, Merged
from dsmigrate.document import render_path
from dsmigrate.languages import say

VERSION = 1


def lines(merged: Merged, *, show_all: bool = False) -> Iterator[Line]:
    """Yield the review in the terms of a terminal: conflicts, what breaks together, then each side."""
    yield from _points(merged)
    for name, compared in (("ours", merged.ours), ("theirs", merged.theirs)):
        yield ()
        yield (f"{name}: ", "bold"), (compared.new_name, "bold")
        yield from islice(text.render(compared, show_all=show_all), 1, None)


def _points(merged: Merged) -> Iterator[Line]:
    for conflict in merged.conflicts:
        yield ("conflict ", "bold red"), (f"{conflict.path}: ", "bold"), (_values(conflict), "")
    for found in merged.together:
        yield (
            ("together ", "bold yellow"),
            (f"[{found.code}] ", "dim"),
            (f"{render_path(found.path)}: {found.message}", ""),
        )
    if merged.agreed:
        yield (say("both alike "), "dim"), (", ".join(merged.agreed), "")
    if not merged.conflicts and not merged.together:
        yield ((say("Both changes go together"), "bold green"),)


def _values(conflict: Conflict) -> str:
    ours, theirs = conflict.ours, conflict.theirs
    base = value_text(ours.old, ours.old_meant)
    return say("{base} in the base, {new} in ours, {new_2} in theirs", base=base, new=_new(ours), new_2=_new(theirs))


def _new(change: Change) -> str:
    return value_text(change.new, change.new_meant)


def render_markdown(merged: Merged, *, show_all: bool = False) -> str:
    """Return the review as Markdown."""
    points = [
        *(
            say(
                "- **conflict** {code}: {message}", code=markdown.code(one.path), message=markdown.message(_values(one))
            )
            for one in merged.conflicts
        ),
        *(
            say("- **together** {code} {message}", code=one.code, message=markdown.message(one.message))
            for one in merged.together
        ),
        *(say("- both alike: {code}", code=markdown.code(path)) for path in merged.agreed),
    ]
    if not merged.conflicts and not merged.together:
        points.append(say("- Both changes go together."))
    sides = (markdown.render(compared, show_all=show_all) for compared in (merged.ours, merged.theirs))
    return "\n".join((say("## Merge of DeepSpeed configs"), "", *points, "", *sides))


def render_json(merged: Merged) -> str:
    """Return the document of ``schemas/output/diff-merge.schema.json``."""
    return json.dumps(document(merged), indent=2) + "\n"


def document(merged: Merged) -> dict[str, Any]:
    """Return the review as its contract has it; ``ours`` and ``theirs`` are comparisons with the base."""
    return {
        "version": VERSION,
        "ours": single.document(merged.ours),
        "theirs": single.document(merged.theirs),
        "conflicts": [
            {
                "path": one.path,
                "base": single.value(one.ours.old_meant),
                "ours": single.value(one.ours.new_meant),
                "theirs": single.value(one.theirs.new_meant),
            }
            for one in merged.conflicts
        ],
        "agreed": list(merged.agreed),
        "together": [
            {"code": one.code, "severity": one.severity.value, "path": render_path(one.path), "message": one.message}
            for one in merged.together
        ],
    }
