"""Every dependency has a lower bound, and the run that is to take them takes them."""

from __future__ import annotations

import os
from importlib.metadata import requires, version

from packaging.requirements import Requirement
from packaging.version import Version

from tests.support.lowest import lowest

ENVIRONMENT = "DSMIGRATE_LOWEST"
"""Set where the lowest versions are installed."""


def needed() -> list[Requirement]:
    """What the package needs here, as its metadata has it."""
    asked = [Requirement(text) for text in requires("dsmigrate") or ()]
    return [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]


def test_every_dependency_has_a_lower_bound_that_its_own_metadata_repeats() -> None:
    bounds = lowest()
    assert bounds
    for one in needed():
        assert f">={bounds[one.name]}" in str(one.specifier), one


def test_what_is_installed_is_allowed_and_the_lowest_where_that_was_asked_for() -> None:
    bounds = lowest()
    for one in needed():
        found = version(one.name)
        assert one.specifier.contains(found, prereleases=True), f"{one.name} {found}"
        if os.environ.get(ENVIRONMENT):
            assert Version(found) == Version(bounds[one.name]), f"{one.name} {found} is not the lowest"
