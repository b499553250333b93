"""The configs of a range of commits, one after the other: for people, and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from dsmigrate.diff.changed import Outcome, Status
from dsmigrate.diff.formats import json as single
from dsmigrate.diff.formats import text
from dsmigrate.diff.formats.text import Line
from dsmigrate.languages import say

VERSION = 1


def lines(outcomes: Sequence[Outcome], *, show_all: bool = False) -> Iterator[Line]:
    """Yield the report in the terms of a terminal: each config with its status, then how many there are."""
    for outcome in outcomes:
        yield from one(outcome, show_all=show_all)
    yield ((_total(outcomes), "dim"),)


def one(outcome: Outcome, *, show_all: bool = False) -> Iterator[Line]:
    """Yield the report about one config, ended by a blank line."""
    yield (outcome.entry.status.value, "dim"), (" ", ""), (outcome.title, "bold")
    if outcome.compared is not None:
        yield from islice(text.render(outcome.compared, show_all=show_all), 1, None)
    else:
        yield ((outcome.error or outcome.note, "bold red" if outcome.error else ""),)
    yield ()


def _total(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return say("no DeepSpeed config is changed")
    counts = Counter(outcome.entry.status for outcome in outcomes)
    listed = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    return say(
        "{outcomes} DeepSpeed {en_word}: {listed}",
        outcomes=len(outcomes),
        en_word="config" if len(outcomes) == 1 else "configs",
        listed=listed,
    )


def render_json(outcomes: Sequence[Outcome], revisions: str) -> str:
    """Return the document of ``schemas/output/diff-range.schema.json``; ``diff`` is that of a single comparison."""
    return json.dumps(document(outcomes, revisions), indent=2) + "\n"


def document(outcomes: Sequence[Outcome], revisions: str) -> dict[str, Any]:
    """Return the comparison of a range as its contract has it."""
    statuses = Counter(outcome.entry.status for outcome in outcomes)
    return {
        "version": VERSION,
        "range": revisions,
        "files": [_file(outcome) for outcome in outcomes],
        "summary": {
            "files": len(outcomes),
            "statuses": {status.value: statuses[status] for status in Status},
            "same": sum(outcome.compared is not None and outcome.compared.result.is_same for outcome in outcomes),
            "errors": sum(bool(outcome.error) for outcome in outcomes),
        },
    }


def _file(outcome: Outcome) -> dict[str, Any]:
    entry = outcome.entry
    return {
        "status": entry.status.value,
        "old_path": None if entry.old is None else entry.old.name,
        "new_path": None if entry.new is None else entry.new.name,
        "verdict": outcome.verdict,
        "error": outcome.error or None,
        "diff": None if outcome.compared is None else single.document(outcome.compared),
    }
