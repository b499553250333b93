"""A script comes to the same however it is spelt."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .outcomes import Read, apart, outcome
from .rewritings import REWRITINGS, rewritten

pytestmark = pytest.mark.broad
EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPTS = ("autocast_ctx.py", "warmup_resume.py", "library_scaler/main.py")
EXCEPTIONS = {
    "managers by hand": "autocast that is switched on without a region is left to the person (MG307)",
    "managers on a stack": "as by hand: the region is not seen around the forward (MG307)",
}
"""Spellings that come to something else where the script has a place for them, and why."""


def reading(script: str) -> tuple[Read, str]:
    """The files around an example, and its own path among them."""
    path = EXAMPLES / script

    def read(name: str) -> bytes | None:
        file = path.parent / name
        return file.read_bytes() if file.is_file() else None

    return read, path.name


@cache
def as_it_is(script: str) -> dict[str, Any]:
    return outcome(*reading(script))


@pytest.mark.parametrize("how", REWRITINGS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_another_spelling_comes_to_the_same(script: str, how: str) -> None:
    made = rewritten((EXAMPLES / script).read_text(encoding="utf-8"), how)
    if made is None:
        return  # the script has no place for this spelling
    text, files = made
    differing = apart(as_it_is(script), outcome(*reading(script), text, files))
    if differing and how in EXCEPTIONS:
        pytest.xfail(EXCEPTIONS[how])
    assert not differing


def test_each_spelling_has_a_place_in_one_of_the_scripts() -> None:
    sources = [(EXAMPLES / script).read_text(encoding="utf-8") for script in SCRIPTS]
    assert {how for how in REWRITINGS if all(rewritten(source, how) is None for source in sources)} <= set()


def test_a_script_that_trains_otherwise_comes_to_something_else() -> None:
    source = (EXAMPLES / "warmup_resume.py").read_text(encoding="utf-8")
    changed = source.replace("loss.backward()", "loss.backward(retain_graph=True); loss.backward()")
    assert changed != source
    assert apart(as_it_is("warmup_resume.py"), outcome(*reading("warmup_resume.py"), changed))
