"""Configs that pass and configs that fail, each for the reason that is stated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .bad import BAD, Bad
from .support import failures, for_release, good_configs, validator


@pytest.mark.parametrize(
    ("minor", "path"),
    [pytest.param(minor, path, id=f"{minor or 'newest'}-{name}") for name, minor, path in good_configs()],
)
def test_a_good_config_passes(minor: str | None, path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    assert failures(validator(for_release(minor)), config) == []


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in BAD])
def test_a_bad_config_fails_where_it_is_wrong_and_nowhere_else(case: Bad) -> None:
    found = failures(validator(case.schema), case.config)
    assert found
    for told in found:
        assert (case.path, case.keyword) in {(failure.path, failure.keyword) for failure in told}, found


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in BAD if case.minor is not None])
def test_a_bad_config_of_an_older_release_says_something_of_that_release(case: Bad) -> None:
    """Else the case belongs to the newest release."""
    assert failures(validator(), case.config) != failures(validator(case.schema), case.config)


def test_names_are_unique() -> None:
    assert len({case.name for case in BAD}) == len(BAD)
