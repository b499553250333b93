"""The page names every cause, and its tolerances are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from dsmigrate.verify import failures, resume
from dsmigrate.verify.causes import signatures
from dsmigrate.verify.tolerance import FULL, FULL_ON_GPU, HALF, MIXED, MIXED_AT_ZERO_3

PAGE = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
OF_RESUMING = re.findall(
    r'^\s+(?:cause = Cause\()?"([a-z]+(?:-[a-z]+)+)",', Path(resume.__file__).read_text(encoding="utf-8"), re.MULTILINE
)


def test_every_signature_has_its_row() -> None:
    for one in signatures():
        kind = "observed" if one.certain else "inferred"
        assert f"| `{one.id}` | {one.title} | {kind} |" in PAGE


def test_every_failure_has_its_row() -> None:
    for known in failures._KNOWN:
        assert f"| `{known.id}` | {known.title} |" in PAGE


def test_the_causes_of_bad_restarts_are_named() -> None:
    assert len(set(OF_RESUMING)) == 6
    for name in OF_RESUMING:
        assert f"`{name}`" in PAGE


def test_the_tolerances_are_those_of_the_code() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| (?:full|mixed|half)", line)]
    numbers = [[float(cell) for cell in row.split("|")[2:6]] for row in rows]
    kinds = (FULL, FULL_ON_GPU, MIXED, MIXED_AT_ZERO_3, HALF)
    assert numbers == [[kind.first, kind.loss, kind.norm, kind.weights] for kind in kinds]
