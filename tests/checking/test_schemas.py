"""JSON Schemas of a project: found, used, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.checking.job import check_file
from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.completion import complete
from dsmigrate.editing.hover import hover_at
from dsmigrate.rules import Facts, OwnSchema, Settings
from dsmigrate.settings.check import check_settings_for

TEAM: dict[str, Any] = {
    "properties": {
        "team": {
            "type": "object",
            "title": "What the team adds",
            "properties": {
                "seed": {"type": "integer", "minimum": 0, "description": "Seed of the run."},
                "mode": {"enum": ["fast", "slow"], "default": "slow"},
            },
            "required": ["seed"],
            "additionalProperties": False,
        },
        "gradient_clipping": {"maximum": 1},
    }
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "team.schema.json").write_text(json.dumps(TEAM), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.dsmigrate.check]\nschemas = ["team.schema.json"]\n', encoding="utf-8"
    )
    (tmp_path / "configs").mkdir()
    return tmp_path


def found(file: Path, text: str) -> list[tuple[str, str]]:
    """Return what is told of own schemas: the text of its range, and its message."""
    file.write_text(text, encoding="utf-8")
    findings = check_file(file, check_settings_for(file.parent)).findings
    return [(text[one.start : one.end], one.message) for one in findings if one.code == "DS140"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"train_batch_size": 8, "team": {"seed": 1, "mode": "fast"}}', []),
        ('{"train_batch_size": 8}', []),
        ('{"team": {"seed": -1}}', [("-1", "`-1` is less than `0` (team.schema.json)")]),
        (
            '{"team": {"seed": 1, "mode": "idle"}}',
            [('"idle"', '`"idle"` is not one of `["fast", "slow"]` (team.schema.json)')],
        ),
        ('{"team": {}}', [("{}", "lacks `seed` (team.schema.json)")]),
        ('{"gradient_clipping": 2.0}', [("2.0", "`2` is more than `1` (team.schema.json)")]),
    ],
)
def test_a_schema_of_the_settings_is_held_against_what_it_names(
    project: Path, text: str, told: list[tuple[str, str]]
) -> None:
    assert found(project / "configs" / "ds.json", text) == told


def test_a_key_that_is_not_allowed_is_pointed_at(project: Path) -> None:
    ((where, message),) = found(project / "configs" / "ds.json", '{"team": {"seed": 1, "sed": 2}}')
    assert where == '"sed"'
    assert "the schema has no key" in message


def test_keys_that_a_schema_describes_are_not_unknown_to_the_rules(project: Path) -> None:
    file = project / "configs" / "ds.json"
    file.write_text('{"train_batch_size": 8, "team": {"seed": 1}, "crew": 1}', encoding="utf-8")
    findings = check_file(file, check_settings_for(file.parent)).findings
    assert [one.path for one in findings if one.code in {"DS101", "DS102", "DS103"}] == [("crew",)]


def test_a_file_names_a_schema_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text(json.dumps(TEAM), encoding="utf-8")
    told = found(tmp_path / "ds.json", '{"$schema": "./own.json", "team": {"seed": "x"}}')
    assert told == [('"x"', '`"x"` is not of type `"integer"` (./own.json)')]
    assert found(tmp_path / "ds.json", '{"$schema": "https://example.com/own.json", "team": {"seed": "x"}}') == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such file"),
        ("{", "it is not JSON: "),
        ("[]", "it is no object"),
        ('{"type": "nothing"}', "'nothing' is not valid under any of the given schemas"),
        ('{"properties": {"team": {"$ref": "other.json"}}}', "other.json"),
    ],
)
def test_a_schema_that_cannot_be_used_is_said_with_the_reason(
    tmp_path: Path, content: str | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "own.json").write_text(content, encoding="utf-8")
    ((where, message),) = found(tmp_path / "ds.json", '{"$schema": "own.json", "team": {"seed": 1}}')
    assert where == '"own.json"'
    assert message.startswith("the schema own.json cannot be used: ")
    assert problem in message


def view(text: str) -> View:
    return View(parse(text), Settings(facts=Facts(schemas=(OwnSchema("team.schema.json", TEAM),))))


def labels(text: str) -> list[str]:
    offset = text.index("|")
    return [item.label for item in complete(view(text.replace("|", "")), offset, snippets=False)]


def test_completion_offers_what_a_schema_describes() -> None:
    assert "team" in labels('{"train_batch_size": 8, |}')
    assert labels('{"team": {"seed": 1, |}}') == ["mode"]
    assert labels('{"team": {"mode": |}}') == ['"fast"', '"slow"']


def test_a_hover_says_what_a_schema_describes() -> None:
    text = '{"team": {"seed": 1}}'
    shown = hover_at(view(text), text.index("seed"))
    assert shown is not None
    assert shown.markdown == "Seed of the run.\n\nType: integer.\n\nFrom `team.schema.json`."
