"""A file that only defines the training says so: the script that imports it is the one to launch."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.catalogue import example
from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert, migrate

LIBRARY = example("MG210", "before")


@pytest.mark.parametrize(
    "line", ["", "LIMIT = len([1])\n", "try:\n    import apex\nexcept ImportError:\n    apex = None\n"]
)
def test_a_file_of_definitions_starts_nothing(line: str) -> None:
    migrated = migrate(LIBRARY + "\n\n" + line)
    migrated.said("MG210", "self.model = DDP(", Kind.KEPT)


@pytest.mark.parametrize(
    "line",
    [
        "Trainer(None, None, 0).fit()\n",
        "trainer = Trainer(None, None, 0)\ntrainer.fit()\n",
        "losses = Trainer(None, None, 0).fit()\n",
        "if __name__ == '__main__':\n    Trainer(None, None, 0).fit()\n",
        "for rank in [0]:\n    Trainer(None, None, rank).fit()\n",
        "try:\n    Trainer(None, None, 0).fit()\nexcept KeyboardInterrupt:\n    pass\n",
    ],
)
def test_a_file_that_runs_what_it_defines_has_nothing_to_say(line: str) -> None:
    migrate(LIBRARY + "\n\n" + line).silent("MG210")


def test_a_script_with_a_main_has_nothing_to_say() -> None:
    convert().silent("MG210")
