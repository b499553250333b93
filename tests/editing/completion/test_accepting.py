"""What is offered can be accepted: the text can be read, and DeepSpeed refuses nothing that it took before.

Configs are typed in at random places and in many ways; ``half_typed`` makes the moments. ``DSMIGRATE_CORPUS`` names a
folder of real configs, of which many more items are accepted.
"""

from __future__ import annotations

import pytest

from dsmigrate.knowledge import knowledge
from tests.document.texts import EXPLORE, NO_CORPUS, corpus
from tests.editing.completion.accepting import Fault, faults
from tests.editing.completion.configs import SETTINGS, made, real
from tests.editing.completion.half_typed import moments

MADE, REAL = int(EXPLORE or "1200"), 20_000
EACH = 8
"""Items that are accepted at one moment."""


def wrong(texts: list[str], seed: int, count: int) -> list[str]:
    """Return what is wrong after items were accepted in ``texts``; so many are looked at."""
    found = list(faults(moments(seed, texts, knowledge()), SETTINGS, count=count, each=EACH))
    assert len(found) == count
    return [str(fault) for fault in found if isinstance(fault, Fault)]


@pytest.mark.broad
def test_items_in_made_configs_leave_them_whole() -> None:
    assert wrong(made(3, 200, knowledge()), 3, MADE) == []


@pytest.mark.slow
@pytest.mark.skipif(not corpus(), reason=NO_CORPUS)
def test_items_in_real_configs_leave_them_whole() -> None:
    assert wrong(real(), 11, REAL) == []
