"""What the pages say is what the tool does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.codemod.model import NEWEST_DEEPSPEED
from dsmigrate.docs.readme import refreshed
from dsmigrate.schemas_location import schema_file
from dsmigrate.settings.fields import SETTINGS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_readme_opens_with_what_the_tool_does_to_its_script() -> None:
    before, patch = README.index("```python\n"), README.index("```diff\n")
    assert before < patch < README.index("## Two commands")
    assert refreshed(README) == README, "run python -m dsmigrate.docs"


def test_the_readme_has_exactly_two_commands_and_what_they_name_exists() -> None:
    commands = blocks(section("Two commands"), "sh")
    assert len(commands) == 2
    assert all(len(command.strip().splitlines()) == 1 for command in commands)
    example = re.search(r"examples/\S+\.py", commands[0])
    assert example is not None
    assert (ROOT / example[0]).is_file()
    assert commands[1] == "bash tests/run.sh\n"
    assert (ROOT / "tests" / "run.sh").is_file()
    assert "exec bash tests/run.sh" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_in_the_table_of_options(name: str) -> None:
    assert f"--{name}`" in section("Use") or name == "nvme-path"


def test_the_newest_release_is_the_one_the_readme_names() -> None:
    assert f"| 0.9 to {NEWEST_DEEPSPEED} | {NEWEST_DEEPSPEED} |" in README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_example_of_the_json_contract_follows_the_schema() -> None:
    (example,) = blocks((ROOT / "docs" / "json.md").read_text(encoding="utf-8"), "json")
    jsonschema.validate(json.loads(example), json.loads(schema_file("output/migrate.schema.json").read_text()))
