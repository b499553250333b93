"""The facts of the newest release that show only where a key is used, each against DeepSpeed's own engine.

Every key whose "auto" is said to stop the engine stops it, every other one lets it work. Closed lists and limits that
the config does not check are checked by the engine, or not, as stated. The same config without the value has to work.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dsmigrate.knowledge import MISSING, AutoEffect, Consumer, Key

from .at_work import answers, at_work
from .facts import boundaries, every_key, none, show

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("facts")]

AUTO = "auto"
ON = True
Answers = dict[tuple[str, str], str]


def with_auto(*effects: AutoEffect) -> list[Key]:
    """The keys whose "auto" has one of these effects in plain DeepSpeed."""
    return [key for key in every_key() if key.auto(Consumer.DEEPSPEED).effect in effects]


def checked_late() -> list[tuple[Key, object]]:
    """Every value outside a list or a limit that the config takes as it is."""
    late = [
        key for key in every_key() if not key.rejects_wrong_values or (key.enum and not key.rejects_values_not_listed)
    ]
    values: list[tuple[Key, object]] = [(key, "zzz") for key in late if key.enum]
    return values + [(key, value) for key in late if not key.enum for value, fits in boundaries(key) if not fits]


@pytest.fixture(scope="module")
def told() -> Answers:
    """What went wrong, by the path of a key and the value there; one process judges them all."""
    cases = [(key, AUTO) for key in with_auto(AutoEffect.ENGINE_ERROR, AutoEffect.TEXT, AutoEffect.VALUE)]
    cases += [(key, ON) for key in with_auto(AutoEffect.TEXT) if "boolean" in key.type]
    cases += checked_late()
    cases += [(key, MISSING) for key, _ in cases]
    found = answers([at_work(key, value) for key, value in cases])
    return {(key.path, repr(value)): error for (key, value), error in zip(cases, found, strict=True)}


def judged(told: Answers, cases: Sequence[tuple[Key, object, bool]]) -> dict[str, tuple[str, str]]:
    """Return the values that do not work, or fail, as said: each with the answers without it and with it."""
    pairs = {
        f"{key.path} = {value!r}": (told[key.path, repr(MISSING)], told[key.path, repr(value)], works)
        for key, value, works in cases
    }
    return {
        said: (without, with_it)
        for said, (without, with_it, works) in pairs.items()
        if without or bool(with_it) is works
    }


def test_auto_that_is_said_to_stop_the_engine_stops_it(told: Answers) -> None:
    said = with_auto(AutoEffect.ENGINE_ERROR)
    wrong = judged(told, [(key, AUTO, False) for key in said])
    show(f'of {len(said)} keys said to stop the engine with "auto", confirmed', len(said) - len(wrong))
    none(wrong)
    assert len(said) > 100


def test_auto_that_is_a_value_or_stays_a_text_lets_the_engine_work(told: Answers) -> None:
    said = with_auto(AutoEffect.TEXT, AutoEffect.VALUE)
    switches = [key for key in said if "boolean" in key.type and not key.is_section]
    wrong = judged(told, [(key, AUTO, True) for key in said if key not in switches])
    for key in switches:
        as_true, as_text = told[key.path, repr(ON)], told[key.path, repr(AUTO)]
        if as_true != as_text or told[key.path, repr(MISSING)]:
            wrong[f"{key.path}, a text that counts as true"] = as_true, as_text
    show(f'of {len(said)} keys said to take "auto", confirmed', len(said) - len(wrong))
    none(wrong)
    assert len(said) > 80


def test_closed_lists_and_limits_that_the_config_does_not_check_are_checked_or_not_as_stated(told: Answers) -> None:
    cases = checked_late()
    wrong = judged(told, [(key, value, key.takes_values_not_listed) for key, value in cases])
    show(f"of {len(cases)} values outside a list or a limit, confirmed", len(cases) - len(wrong))
    none(wrong)
    assert len(cases) > 30
