from __future__ import annotations

import re
from pathlib import Path

from dsmigrate.checking.formats.places import url
from dsmigrate.convert import codes
from dsmigrate.convert.codes import CODES
from dsmigrate.convert.facts import accelerate, fields

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "convert.md").read_text(encoding="utf-8")
SOURCES = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "server/dsmigrate/convert").rglob("*.py"))


def test_every_code_has_its_place_on_the_page() -> None:
    assert re.findall(r"(?m)^### (CV\d{3})$", PAGE) == list(CODES)
    for code, about in CODES.items():
        assert f"### {code}\n\n{about.summary}. " in PAGE
        assert url(code).endswith(f"/docs/convert.md#{code.lower()}")


def test_every_code_is_given_somewhere_and_named_once() -> None:
    names = {name: value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert sorted(names.values()) == sorted(CODES)
    for name in names:
        assert f"codes.{name}" in SOURCES, name


def test_every_field_is_one_that_may_not_stand_beside_a_file() -> None:
    assert {*fields(), "mixed_precision"} == set(accelerate()["excluded_by_file"])
