"""The rules against the config classes of older releases, whose sources come from the package index."""

from __future__ import annotations

import pytest

from dsmigrate.derivation.index import UnreachableError

from . import compare, releases, report

COUNT = 500
FOUND = 0.99
"""What may be missing are two errors of the same words at two keys, of which the rules name one."""


@pytest.mark.derivation
@pytest.mark.parametrize("version", releases.RELEASES)
def test_rules_agree_with_the_config_class_of_an_older_release(version: str) -> None:
    try:
        root = releases.sources().root(version)
    except UnreachableError as error:
        pytest.skip(str(error))
    rows = releases.compare(version, root, COUNT)
    rates = report.rates(rows)
    told = "\n".join([str(rates), *report.differences(rows, notes=False)])
    assert not [row for row in rows if row.outcome == compare.CRASHED], told
    assert rates.rejected > COUNT / 4
    assert rates.accepted > COUNT / 8
    assert rates.found_share >= FOUND, told
    assert rates.false_alarms == 0, told


def test_a_rule_about_the_engine_is_told_from_one_about_the_config() -> None:
    assert releases.is_about_config("DS110")
    assert not releases.is_about_config("DS600")
