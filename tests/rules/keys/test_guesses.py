"""Every key is found again after a slip of its case, its dashes or its place."""

from __future__ import annotations

import json

import pytest

from dsmigrate.document import parse
from dsmigrate.knowledge import Key, Status, knowledge
from dsmigrate.rules.context import Context
from dsmigrate.rules.keys._shared import guesses, unknown

KNOWN = knowledge()
HERE = {Status.PRESENT, Status.DEPRECATED}


def keys() -> list[Key]:
    found = [KNOWN.key(path) for path in KNOWN.every_path()]
    return [
        key
        for key in found
        if key is not None
        and key.status in HERE
        and key.alias_of is None
        and "*" not in key.path
        and "[]" not in key.path
        and key.parent != "optimizer.params"
    ]


def first(names: list[str]) -> str | None:
    config: object = None
    for name in reversed(names):
        config = {name: config}
    context = Context(parse(json.dumps(config)), KNOWN)
    found = [guesses(context, entry, section) for entry, section in unknown(context)]
    return found[0][0].path if found and found[0] else None


@pytest.mark.parametrize("slip", [str.upper, str.capitalize, lambda name: name.replace("_", "-")])
def test_a_slip_of_case_or_dashes_leads_back(slip: object) -> None:
    assert callable(slip)
    for key in keys():
        wrong = slip(key.name)
        if wrong != key.name:
            assert first([*key.path.split(".")[:-1], wrong]) == key.path


def test_a_key_at_the_top_level_leads_home_when_its_name_is_its_own() -> None:
    for key in keys():
        if key.parent and KNOWN.key(key.name) is None and KNOWN.ending_in(key.name) == [key.path]:
            assert first([key.name]) == key.path


@pytest.mark.parametrize("name", ["dynamic_train", "num_gpus", "my_model", "dataset"])
def test_an_application_key_leads_nowhere(name: str) -> None:
    assert first([name]) is None
