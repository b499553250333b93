from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import settings

from dsmigrate.migration import job
from tests.support import codemod

settings.register_profile("dsmigrate", deadline=None)  # no test has a time limit: machines differ
settings.load_profile("dsmigrate")

_LONGEST_ID = 200  # of the 10 MB of one test's text, each report would carry all


def pytest_configure(config: pytest.Config) -> None:
    """Stop where pytest-xdist 3.8 keeps no groups, and each process would prepare what one of them should."""
    if config.getoption("dist", None) == "loadgroup" and not hasattr(pytest.Item, "_nodeid"):
        raise pytest.UsageError(
            f"pytest {pytest.__version__} and pytest-xdist keep no groups of tests: see pyproject.toml"
        )


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its argument; pytest numbers those that are called alike."""
    return argname if isinstance(val, str | bytes) and len(val) > _LONGEST_ID else None


@pytest.fixture
def stub_codemod(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a codemod of a few lines in place of the real one, in worker processes too (they are forked)."""
    convert = ModuleType("dsmigrate.codemod.convert")
    convert.Entry, convert.convert_together = codemod.Entry, codemod.convert_together  # type: ignore[attr-defined]
    catalogue = ModuleType("dsmigrate.codemod.catalogue")
    catalogue.ideas, catalogue.with_example = codemod.ideas, codemod.with_example  # type: ignore[attr-defined]
    monkeypatch.setattr(job, "_WORDS", re.compile(b"stub"))
    monkeypatch.setitem(sys.modules, convert.__name__, convert)
    monkeypatch.setitem(sys.modules, catalogue.__name__, catalogue)
    for name in _readers_of_the_catalogue():
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in _readers_of_the_catalogue():
        del sys.modules[name]


def _readers_of_the_catalogue() -> list[str]:
    """Return the modules that hold on to the catalogue once they are imported."""
    readers = ("dsmigrate.migration.catalogue", "dsmigrate.cli.explain", "dsmigrate.docs.__main__", "dsmigrate.explain")
    return [name for name in sys.modules if name in readers or name.startswith("dsmigrate.explain.")]
