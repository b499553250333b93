"""The comparison notices what it is there to notice: every planted fault, mostly in two examples."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from .cases import CASES, Case
from .conversion import ConversionError
from .faults import FAULTS, Fault
from .harness import Lab
from .planting import NotApplicableError
from .verdict import Verdict

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training"), pytest.mark.slow]


def candidates(fault: Fault) -> list[Case]:
    """The cases that a fault names, in its order."""
    return list(dict.fromkeys(case for start in fault.cases for case in CASES if case.name.startswith(start)))


def run_with(fault: Fault, lab: Lab, case: Case, stage: int) -> Verdict | None:
    """Train with the fault. None where it cannot be planted, or where the conversion is wrong without it."""
    try:
        if not lab.verdict(case, stage).agrees:
            return None
        return lab.converted(case, stage, edit=partial(_plant, fault, case))
    except (NotApplicableError, ConversionError):
        return None


def _plant(fault: Fault, case: Case, folder: Path) -> None:
    fault.plant(folder, case)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.name))
def test_a_planted_fault_is_noticed(lab: Lab, fault: Fault, fault_table: list[str]) -> None:
    examples: set[str] = set()
    noticed: dict[str, str] = {}
    passed: dict[str, str] = {}
    for case in candidates(fault):
        if case.example in examples:
            continue
        cells, seen = [], False
        for stage in fault.stages:
            if not seen and (verdict := run_with(fault, lab, case, stage)):
                cells.append(f"{verdict.summary} (ZeRO {stage})")
                seen = not verdict.agrees
        if not cells:
            continue
        (noticed if seen else passed)[case.name] = ", ".join(cells)
        examples |= {case.example} if seen else set()
        if len(examples) >= fault.enough:
            break
    fault_table.append(f"{fault.name:40} noticed {noticed or 'nowhere'}{f', not {passed}' if passed else ''}")
    assert len(examples) >= fault.enough, f"{fault.name} ({fault.trap}): noticed in {noticed}, not in {passed}"
