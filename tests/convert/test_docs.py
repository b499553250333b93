from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dsmigrate.checking.formats.places import url
from dsmigrate.convert import codes
from dsmigrate.convert.explained import Example, Explained, every_conversion
from dsmigrate.convert.facts import accelerate, fields
from dsmigrate.convert.model import Place
from dsmigrate.convert.reading import Input, read
from dsmigrate.convert.recognise import form_of
from dsmigrate.convert.rules import findings_of, rules_of
from dsmigrate.docs.conversions import index, noted, page, severity

ROOT = Path(__file__).parents[2]
FORMS = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "server/dsmigrate/convert").rglob("*.py"))
EXAMPLES = [
    pytest.param(item, example, id=f"{item.code}-{number}")
    for item in every_conversion()
    for number, example in enumerate(item.examples)
]


def test_every_code_is_given_somewhere_named_once_and_explained() -> None:
    names = {name: value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert sorted(names.values()) == [item.code for item in every_conversion()]
    for name in names:
        assert FORMS.count(f"codes.{name}") >= 2, name  # where it is said, and where it is explained
    assert len({item.name for item in every_conversion()}) == len(names)


@pytest.mark.parametrize("item", every_conversion(), ids=lambda item: item.code)
def test_a_code_has_its_page_with_why_what_to_do_and_where_it_is_from(item: Explained) -> None:
    text = page(item)
    assert text.startswith(f"# {item.code}: {item.name}\n\n{item.summary}\n\n**Effect.** ")
    for part in ("## Why", "## What to do", "## Examples", f"> [{item.code}] ", "## Source", item.why, item.advice):
        assert part in text
    assert f"| [{item.code}]({item.code}.md) | {item.name} | {item.summary} |" in index(every_conversion())
    assert url(item.code).endswith(f"/docs/conversions/{item.code}.md")
    assert (ROOT / "docs" / "conversions" / f"{item.code}.md").is_file()
    assert len(item.kinds) <= 2
    assert item.source


@pytest.mark.parametrize(("item", "example"), EXAMPLES)
def test_an_example_is_told_as_its_code_says_and_its_other_text_is_not(item: Explained, example: Example) -> None:
    found = noted(item, example)
    assert found
    assert {note.kind for note in found} <= set(item.kinds)
    if example.instead:
        assert noted(item, replace(example, text=example.instead)) == []


@pytest.mark.parametrize(("item", "example"), EXAMPLES)
def test_a_check_reports_a_fault_of_the_source_and_nothing_else(item: Explained, example: Example) -> None:
    settings = read(form_of(example.name, example.text), Input(example.text, Path("/nowhere")))
    told = [one for one in findings_of(settings.notes, Place(0, 0, 0, 0)) if one.code == item.code]
    if item.is_checked and example.name != "ds_config.json":
        assert {one.severity for one in told} == {severity(item)}
    elif not item.code.startswith("CV4"):  # FSDP is converted, and not checked
        assert told == []


def test_reports_say_of_a_code_what_its_page_says() -> None:
    found = {rule.code: rule for rule in rules_of({"CV101", "CV104", "DS101"})}
    assert sorted(found) == ["CV101", "CV104"]
    item = next(item for item in every_conversion() if item.code == "CV104")
    rule = found["CV104"]
    assert (rule.name, rule.summary, rule.why, rule.severity) == (item.name, item.summary, item.why, severity(item))


def test_every_field_is_one_that_may_not_stand_beside_a_file() -> None:
    assert {*fields(), "mixed_precision"} == set(accelerate()["excluded_by_file"])
