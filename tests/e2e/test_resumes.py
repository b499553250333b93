"""A checkpoint is one file for the original and its conversions: each goes on from what another has left.

By default each pair of a ZeRO stage, a precision, a direction and a number of processes is trained at least once. All
that may be combined, some 20 minutes, is asked for by ``DSMIGRATE_E2E_RESUMES=all pytest tests/e2e/test_resumes.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import pytest

from .cases import CASES, Case, case_named
from .harness import EXAMPLES, RANKS, Lab, stages
from .readings import EXACT, compare, joined
from .verdict import resumed_tolerance

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training")]

RESUMING = [case for case in CASES if case.halves]
EVERYTHING = os.environ.get("DSMIGRATE_E2E_RESUMES") == "all"


@dataclass(frozen=True, slots=True)
class Resume:
    """Who leaves the checkpoint and who goes on: a conversion for a ZeRO stage, or the original, which is None."""

    case: Case
    writer: int | None
    reader: int | None
    ranks: int = RANKS

    def __str__(self) -> str:
        sides = ["ddp" if side is None else f"zero{side}" for side in (self.writer, self.reader)]
        return f"{self.case.name}-{'-to-'.join(sides)}-{self.ranks}-processes"

    @property
    def traits(self) -> dict[str, object]:
        """What the pairs are made of."""
        return {
            "stage": self.reader if self.writer is None else self.writer,
            "precision": self.case.precision,
            "direction": (self.writer is None, self.reader is None),
            "processes": self.ranks == RANKS,
        }


def every(case: Case, stage: int) -> Iterator[Resume]:
    """All that may be combined with a stage."""
    for writer, reader in ((None, stage), (stage, None), (stage, stage), (stage, (stage + 1) % 4)):
        for ranks in (RANKS, *case.ranks):
            yield Resume(case, writer, reader, ranks)


def some(case: Case, stage: int, turn: int) -> Iterator[Resume]:
    """A choice from that, another one in each turn; the first is trained by test_training_parity.py anyway."""
    other = case.ranks[0]
    yield Resume(case, None, stage)
    yield Resume(case, stage, None, RANKS if turn % 2 else other)
    if turn % 8 == 1:
        yield Resume(case, None, stage, other)
    if turn % 8 == 5:
        yield Resume(case, stage, (stage + 1) % 4, RANKS if stage % 2 else other)


def resumes(stages: Iterable[int], *, everything: bool) -> list[Resume]:
    """What is trained, an example after the other."""
    places = [(case, stage, number + stage) for number, case in enumerate(RESUMING) for stage in stages]
    return [
        one for case, stage, turn in places for one in (every(case, stage) if everything else some(case, stage, turn))
    ]


@pytest.mark.parametrize("case", RESUMING, ids=lambda case: str(case.name))
def test_an_original_resumes_where_it_stopped(lab: Lab, case: Case) -> None:
    halves = lab.first_half(case, None), lab.second_half(case, None, None)
    result = compare(lab.original(case).readings, joined(*(half.readings for half in halves)), EXACT)
    assert result.same, "\n".join(result.differences)


@pytest.mark.parametrize("resume", resumes(stages(), everything=EVERYTHING), ids=str)
def test_a_resumed_run_is_that_of_the_original(lab: Lab, resume: Resume) -> None:
    expected = lab.second_half(resume.case, None, None, resume.ranks)
    found = lab.second_half(resume.case, resume.writer, resume.reader, resume.ranks)
    assert expected.readings
    assert found.succeeded, found.excerpt()
    allowed = resumed_tolerance(resume.case, resume.writer, resume.reader)
    result = compare(expected.readings, found.readings, allowed)
    assert result.same, "\n".join([*result.differences[:8], found.excerpt()])


def test_each_pair_is_among_the_resumes() -> None:
    def pairs(chosen: list[Resume]) -> set[object]:
        return {pair for one in chosen for pair in combinations(one.traits.items(), 2)}

    assert pairs(resumes(range(4), everything=False)) == pairs(resumes(range(4), everything=True))


@pytest.mark.parametrize(
    ("case", "stage"),
    [pytest.param(case, stage, id=f"{case.name}-zero{stage}") for case, stage in product(RESUMING, stages())],
)
def test_the_files_of_a_conversion_are_those_of_the_original(lab: Lab, case: Case, stage: int) -> None:
    assert lab.files_apart(case, stage) == ()


@pytest.mark.parametrize("stage", stages())
def test_other_scripts_of_the_project_read_them(lab: Lab, stage: int) -> None:
    """An evaluation in one process; a probe, a copy of the best, an archive for an upload, a removal."""
    case = case_named("distribute_helper")
    told = []
    for side in (None, stage):
        folder, flavour = lab.handed_over(case, side, side)
        scripts = [Case(name, f"distribute_helper/{name}.py") for name in ("evaluate", "release")]
        told.append([lab.launch(script, folder, ("tagger.pt",), flavour, ranks=1) for script in scripts])
        assert all(
            (folder / Path(script.script).name).read_bytes() == (EXAMPLES / script.script).read_bytes()
            for script in scripts
        )
    (evaluated, released), found = told
    assert all(one.succeeded for one in (evaluated, released, *found)), [one.excerpt() for one in found]
    assert len(evaluated.readings) == 1
    assert compare(evaluated.readings, found[0].readings, resumed_tolerance(case, stage, None)).same
    assert released.texts == found[1].texts
    assert "upload.tar.gz: ['best.pt'] of epoch 0" in released.texts[0]
