"""Work that may be given up, and what a check comes to that is."""

from __future__ import annotations

from itertools import count

import pytest

from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.patience import CancelledWorkError, LimitError, Patience, pause

CONFIG = "{" + ",\n".join(f'"fp16": {{"enabled": "true", "k{number}": 1}}' for number in range(50)) + "}"


def steps() -> int:
    """Count the pauses of a whole check."""
    clock, view = count(), View(parse(CONFIG))
    with Patience(float("inf"), clock=lambda: next(clock)).within():
        assert view.findings
    return next(clock)


def test_a_pause_is_nothing_where_nobody_limits_the_work() -> None:
    pause()


def test_work_ends_at_its_next_pause_when_it_is_cancelled() -> None:
    patience = Patience()
    with patience.within():
        pause()
        patience.cancel()
        with pytest.raises(CancelledWorkError):
            pause()
    with pytest.raises(CancelledWorkError), patience.within():
        raise AssertionError("what was cancelled has begun")
    pause()


def test_work_ends_when_it_has_taken_as_long_as_it_may() -> None:
    clock = count()
    with Patience(3, clock=lambda: next(clock)).within():
        for _ in range(3):
            pause()
        with pytest.raises(LimitError):
            pause()


def test_a_check_pauses_at_every_rule_and_at_every_finding() -> None:
    assert steps() > 150 + len(View(parse(CONFIG)).findings)


def test_a_check_that_ends_at_its_limit_has_found_what_it_had_found_by_then() -> None:
    whole = View(parse(CONFIG))
    assert not whole.context.is_cut
    everything = whole.findings
    assert not whole.context.is_cut
    clock = count()
    view = View(parse(CONFIG))
    with Patience(steps() // 8, clock=lambda: next(clock)).within():
        found = view.findings
    assert view.context.is_cut
    assert 0 < len(found) < len(everything)
    assert set(found) <= set(everything)
