"""Every dependency has a lower bound, and the run that is to take them takes them."""

from __future__ import annotations

import os
from importlib.metadata import requires, version

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ENVIRONMENT = "DSMIGRATE_LOWEST"
"""Set where the lowest versions are installed."""


def needed() -> list[Requirement]:
    """What the package needs here, as its metadata has it."""
    asked = [Requirement(text) for text in requires("dsmigrate") or ()]
    return [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]


@pytest.mark.parametrize("one", needed(), ids=lambda one: one.name)
def test_a_dependency_has_a_lower_bound_and_is_the_lowest_where_that_was_asked_for(one: Requirement) -> None:
    (lowest,) = (Version(bound.version) for bound in one.specifier if bound.operator == ">=")
    found = version(one.name)
    assert one.specifier.contains(found, prereleases=True), found
    assert Version(found) == lowest or not os.environ.get(ENVIRONMENT)
