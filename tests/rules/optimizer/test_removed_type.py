from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.rules import Settings, check


@pytest.mark.parametrize("stage", [0, 1])
def test_under_zero_an_earlier_release_is_no_way_out(stage: int) -> None:
    text = (
        f'{{"train_batch_size": 8, "zero_optimization": {{"stage": {stage}}}, '
        '"optimizer": {"type": "OneBitAdam", "params": {"lr": 2e-4}}}'
    )
    [found] = check(parse(text), Settings(select=("DS605",)))
    assert ("earlier ones refuse it with ZeRO" in found.message) is (stage > 0)
