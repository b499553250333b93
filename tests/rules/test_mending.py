"""Mending comes to an end: what was mended is not mended again, whatever the config."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsmigrate.document import Document, parse
from dsmigrate.rules import Facts, Finding, Settings, check
from dsmigrate.rules.fixing import first_fix, fix_all

from .agreement import corpus
from .agreement.case import Case
from .agreement.generate import cases

COUNT = int(os.environ.get("DSMIGRATE_EXPLORE", "120"))
CORPUS = os.environ.get("DSMIGRATE_CORPUS")


def asked() -> Iterator[Case]:
    """Yield generated configs for the newest release and for an early one, and real ones where there are some."""
    yield from cases(COUNT, seed=21)
    yield from cases(COUNT // 4, seed=22, version="0.12.6")
    if CORPUS is not None:
        yield from corpus.cases(Path(CORPUS))


@pytest.mark.broad
@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
def test_what_is_mended_stays_as_it_is(unsafe: bool) -> None:
    changed = 0
    for case in asked():
        settings = Settings(version=case.version, consumer=case.consumer, facts=Facts(world_size=case.world))

        def found(document: Document, settings: Settings = settings) -> list[Finding]:
            return check(document, settings)

        once = fix_all(parse(case.written), found, unsafe=unsafe)
        changed += bool(once.applied)
        assert [finding for finding in once.left if first_fix(finding, unsafe=unsafe)] == [], case
        assert fix_all(once.document, found, unsafe=unsafe).applied == (), case
    assert changed > COUNT / 2
