"""Which scripts of a project import some of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.migration.importers import users

MAIN = "\nif __name__ == '__main__':\n    pass\n"
FILES = {
    "pkg/__init__.py": "",
    "pkg/model.py": "import math\n",
    "pkg/steps.py": "from .model import Net\n",
    "train.py": "from pkg import (\n    steps,\n)" + MAIN,
    "tools/export.py": "import pkg.model as model" + MAIN,
    "tools/plot.py": "import logging" + MAIN,
    "other/model.py": "",
    "other/run.py": "import model" + MAIN,
    "library.py": "import pkg.model\n",
    "flat.py": "from pkg import steps\nsteps.run()\n",
    "config.py": "from pkg import steps\nSTEPS = steps.Steps()\n",
    "started.py": "import pkg.steps\npkg.steps.register()\n",
    "tools/starts.py": "import started" + MAIN,
}


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("pkg/model.py", {"train.py", "tools/export.py", "flat.py", "tools/starts.py"}),
        ("pkg/__init__.py", {"train.py", "tools/export.py", "flat.py", "tools/starts.py"}),
        ("pkg/steps.py", {"train.py", "flat.py", "tools/starts.py"}),
        ("other/model.py", {"other/run.py"}),
        ("train.py", set()),
    ],
)
def test_users_are_the_scripts_that_lead_to_a_file(tmp_path: Path, file: str, found: set[str]) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    scripts = {path.relative_to(tmp_path.resolve()).as_posix() for path in users(tmp_path, [tmp_path.resolve() / file])}
    assert scripts == found


def test_a_module_of_a_name_of_the_standard_library_is_the_one_beside(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.py").write_text("import logging" + MAIN)
    (tmp_path / "one" / "logging.py").write_text("")
    assert users(tmp_path, [tmp_path.resolve() / "one" / "logging.py"]) == {tmp_path.resolve() / "one" / "run.py"}
