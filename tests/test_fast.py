"""Which tests `tests.fast` takes for a change, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import fast

pytestmark = pytest.mark.broad  # the graph of all imports takes seconds


def names(*paths: str) -> list[str]:
    return [file.relative_to(fast.ROOT).as_posix() for file in fast.affected(paths)]


def test_the_tests_that_import_a_module_come_before_those_of_what_imports_it() -> None:
    found = names("server/dsmigrate/patience.py")
    assert found.index("tests/test_patience.py") < found.index("tests/cli/test_check.py")


def test_a_test_that_has_changed_itself_comes_first() -> None:
    assert names("tests/test_patience.py", "server/dsmigrate/document/words.py")[0] == "tests/test_patience.py"


def test_files_that_nothing_imports_have_their_tests() -> None:
    assert "tests/cli/test_workflows.py" in names(".github/workflows/ci.yml")
    assert names("LICENSE") == []


def test_tests_that_take_long_are_left_out() -> None:
    assert not [name for name in names("server/dsmigrate/patience.py") if name.startswith("tests/e2e/")]


def test_every_test_of_a_file_that_nothing_imports_is_there() -> None:
    for tests in fast.BESIDE.values():
        for name in tests:
            place = Path(fast.ROOT, *name.split("."))
            assert place.is_dir() or place.with_suffix(".py").is_file(), name
