"""No view makes an action raise, at any place: neither when it is offered nor when it is carried out.

What it gives is one text that parses as well as before, without an error that was not there; a fix of a rule may bring
one, where it guesses. ``DSMIGRATE_CORPUS`` names a folder of real configs that are tried as well.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.checking.evidence import consumer_for
from dsmigrate.document import apply, parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import Action, actions, outcome
from dsmigrate.editing.actions.judging import errors
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.rules import Facts, Settings
from tests.document import samples, texts
from tests.rules.agreement.generate import cases
from tests.rules.test_robust import VALUES, placed

pytestmark = pytest.mark.broad

SETTINGS = [
    Settings(version, consumer, Facts(before=before))
    for consumer in Consumer
    for version, before in ((None, "0.14.5"), ("0.16.4", None))
]
FAULTY = st.deferred(lambda: st.sampled_from([case.written for case in cases(150, seed=9)]))
"""Configs with faults of all kinds, which are damaged once more."""

Errors = set[tuple[str, object]]

GUESSES = frozenset({"fix"})
"""Actions whose edits are those of a rule."""


def tried(view: View, offsets: Iterator[int] | list[int], done: set[object] | None = None) -> None:
    """Offer and carry out everything at some places, each action once."""
    seen = set[object]() if done is None else done
    known: Errors | None = None
    for offset in offsets:
        for action in actions(view, offset, offset):
            if action.data in seen:
                continue
            seen.add(action.data)
            known = checked(view, action, known)


def checked(view: View, action: Action, known: Errors | None) -> Errors | None:
    done = outcome(view, action.data)
    assert action.title
    assert not (action.disabled and done.edits)
    if not done.edits:
        assert done.left or action.data[0] in GUESSES, action
        return known
    result = parse(apply(view.text, done.edits))
    assert result.is_readable or not view.document.is_readable, (action, view.text)
    assert result.is_strict_json or not view.document.is_strict_json, (action, view.text)
    if action.data[0] in GUESSES or action.data[0] == "upgrade":
        return known
    found = {(finding.code, finding.path) for finding in errors(view.settings, result)}
    if found:
        known = known or {(finding.code, finding.path) for finding in errors(view.settings, view.document)}
        assert not found - known, (action, view.text)
    return known


def places(text: str, count: int = 12) -> list[int]:
    return sorted({0, len(text), *(len(text) * step // count for step in range(count))})


@pytest.mark.parametrize("name", samples.WHOLE)
def test_every_sample_and_beginnings_of_it(name: str) -> None:
    text = samples.WHOLE[name]
    settings = SETTINGS[len(text) % len(SETTINGS)]
    tried(View(parse(text), SETTINGS[len(name) % len(SETTINGS)]), places(text))
    for end in texts.seeded(len(text)).sample(range(len(text) + 1), min(len(text), 6)):
        tried(View(parse(text[:end]), settings), [end // 2, end])


@texts.GENERAL
@given(
    st.one_of(texts.TEXTS, st.builds(texts.damaged, FAULTY, texts.SEEDS)),
    st.sampled_from(SETTINGS),
    st.integers(0, 400),
    st.integers(-3, 60),
)
def test_any_text(text: str, settings: Settings, start: int, width: int) -> None:
    view = View(parse(text), settings)
    for action in actions(view, start, start + width):
        checked(view, action, None)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_any_value_at_many_keys(value: object) -> None:
    every = knowledge().every_path()
    for number, path in enumerate(every[VALUES.index(value) :: len(VALUES)]):
        text = json.dumps(placed(path, value))
        view = View(parse(text), SETTINGS[number % len(SETTINGS)])
        place = view.document.range_of(tuple(path.replace("[]", "").replace("*", "name").split(".")), "member")
        tried(view, [place[0] if place else 0])


def test_deep_nesting_and_odd_numbers() -> None:
    for text in (
        '{"zero_optimization": ' * 10_000,
        '{"zero_optimization": ' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"amp": ' + '{"a": ' * 480 + "1" + "}" * 481,
        '{"gradient_clipping": 1e999, "fp16": {"enabled": NaN}, "zero_optimization": {"stage": -Infinity}}',
        '{"zero_optimization": {"stage": 1' + "0" * 5000 + "}}",
        '{"\\ud800": "\\udc00", "zero_optimization": {"stage": "\\ud800"}}',
    ):
        for settings in SETTINGS:
            tried(View(parse(text), settings), places(text, 4))


@pytest.mark.skipif(not texts.corpus(), reason=texts.NO_CORPUS)
def test_real_configs_at_every_member_and_beginnings_of_them() -> None:
    for name, text in texts.corpus().items():
        document = parse(text)
        consumer = Consumer(consumer_for(document, None).value)
        for settings in (Settings(consumer=consumer), Settings("0.16.4", consumer)):
            view = View(document, settings)
            tried(view, [member.start for _, member, _ in document.walk() if member is not None])
        chance = texts.seeded(len(name))
        for end in (chance.randrange(len(text) + 1) for _ in range(3)):
            tried(View(parse(text[:end]), Settings(consumer=consumer)), [end])


def test_every_offset_of_one_config_in_every_setting() -> None:
    text = samples.CONFIG
    for settings, view in ((settings, View(parse(text), settings)) for settings in SETTINGS):
        seen: set[object] = set()
        for start, width in itertools.product(range(0, len(text), 3), (0, 5)):
            for action in actions(view, start, start + width):
                if action.data not in seen:
                    seen.add(action.data)
                    checked(view, action, None)
        assert len(seen) > 3, settings
