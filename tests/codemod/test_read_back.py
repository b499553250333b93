"""Faults that training would show are found by reading the result back; tests/benchmarks/planted.py has them all."""

from __future__ import annotations

import functools

import pytest

from tests.benchmarks.planted import Converted
from tests.e2e.cases import CASES
from tests.e2e.faults import FAULTS, Fault
from tests.e2e.planting import NotApplicableError


@functools.cache
def example(name: str) -> Converted:
    return Converted(next(case for case in CASES if case.name == name))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.name))
def test_a_planted_fault_is_found_without_running_anything(fault: Fault) -> None:
    names = [case.name for start in fault.cases for case in CASES if case.name.startswith(start)]
    for name in dict.fromkeys(names):
        try:
            found = example(name).found(fault)
        except NotApplicableError:
            continue
        assert not example(name).alarms
        assert found, name
        return
    pytest.fail("it can be planted nowhere")
