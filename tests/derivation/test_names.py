from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.derivation import names
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.sources import Sources
from dsmigrate.facts.sources import read_toml

PACKAGES = """
[lib]
earlier = ["0.9"]
releases = ["1.0", "1.1"]
names = ["lib/[!m]*"]
[other]
releases = ["2.0"]
modules = ["other/*"]
"""
FOLDER = Path(__file__).parents[2] / "schemas" / "deepspeed"


def derived(tmp_path: Path, *releases: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the names of package ``lib``, whose releases hold these files."""
    folder, wheels = tmp_path / "schemas", tmp_path / "wheels"
    (folder / "messages").mkdir(parents=True)
    (folder / "messages" / "packages.toml").write_text(PACKAGES, encoding="utf-8")
    wheels.mkdir()
    for release, files in zip(("0.9", "1.0", "1.1"), releases, strict=True):
        with zipfile.ZipFile(wheels / f"lib-{release}-py3-none-any.whl", "w") as wheel:
            for name, text in {"lib/__init__.py": "", **files}.items():
                wheel.writestr(name, text)
    made = names.derive(folder, Sources(cache=tmp_path / "cache", index_url=""), [])
    assert [path.relative_to(folder).as_posix() for path in made] == ["names/lib.json"]
    content = json.loads(next(iter(made.values())))
    assert content["releases"] == ["0.9", "1.0", "1.1"]
    found = content["names"]
    assert isinstance(found, dict)
    return found


def test_a_name_is_told_with_the_stretches_of_releases_that_have_it(tmp_path: Path) -> None:
    always = "def kept(a): pass\n"
    found = derived(
        tmp_path,
        {"lib/a.py": f"{always}class C:\n    x = 1\n    def f(self, old): self.y = 1"},
        {"lib/a.py": f"{always}class C:\n    def f(self, *, new): pass\nfrom .b import moved", "lib/b.py": "moved = 1"},
        {"lib/a.py": f"{always}class C:\n    x: int\n    def f(self, *, new): pass\ntry:\n    V = 2\nexcept E: pass"},
    )
    assert found == {
        "lib.a": {
            "C.f(new)": [["1.0", "1.1"]],
            "C.f(old)": [["0.9", "0.9"]],
            "C.x": [["0.9", "0.9"], ["1.1", "1.1"]],
            "C.y": [["0.9", "0.9"]],
            "V": [["1.1", "1.1"]],
            "moved": [["1.0", "1.0"]],
        },
        "lib.b": {"": [["1.0", "1.0"]]},
    }


def test_members_of_the_bases_are_members(tmp_path: Path) -> None:
    base, of_base = "class Base:\n    def old(self): pass\n", "from lib.a import Base\nclass C(Base): pass\n"
    found = derived(
        tmp_path,
        {"lib/a.py": base, "lib/c.py": of_base},
        {"lib/a.py": base, "lib/c.py": of_base},
        {"lib/a.py": "class Base: pass", "lib/c.py": of_base},
    )
    assert found == {"lib.a": {"Base.old": [["0.9", "1.0"]]}, "lib.c": {"C.old": [["0.9", "1.0"]]}}


def test_two_classes_that_are_each_others_base_end(tmp_path: Path) -> None:
    files = {"lib/a.py": "class A(B): pass\nclass B(A):\n    x = 1\n"}
    assert derived(tmp_path, {}, files, files)["lib.a"] == {"": [["1.0", "1.1"]]}


def test_private_names_other_modules_and_imports_from_elsewhere_are_left_out(tmp_path: Path) -> None:
    files = {
        "lib/a.py": "import os\nfrom typing import Any\n_x = 1\nclass _C:\n    y = 1\ndef f(_z): pass\n",
        "lib/_b.py": "x = 1",
        "lib/models/c.py": "x = 1",
        "lib/data.txt": "x = 1",
    }
    kept = {"lib/a.py": "def f(): pass"}
    assert derived(tmp_path, kept, kept, files) == {}


def test_a_module_that_does_not_parse_is_named(tmp_path: Path) -> None:
    with pytest.raises(DerivationError, match=r"lib/a\.py"):
        derived(tmp_path, {}, {}, {"lib/a.py": "def"})


def test_what_is_committed_is_of_the_releases_that_are_known() -> None:
    newest = json.loads((FOLDER / "releases.json").read_bytes())["releases"]
    packages = read_toml(FOLDER / "messages" / "packages.toml")
    named = {name: package for name, package in packages.items() if "names" in package}
    assert {path.stem for path in (FOLDER / "names").iterdir()} == named.keys()
    for name, package in named.items():
        content = json.loads((FOLDER / "names" / f"{name}.json").read_bytes())
        assert content["releases"] == [*package.get("earlier", ()), *package.get("releases", newest)], name
