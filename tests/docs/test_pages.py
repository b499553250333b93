from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.docs.__main__ import CODES, generated, main, stale
from dsmigrate.docs.pages import MARK, page, pages
from dsmigrate.docs.readme import PATCH, refreshed
from dsmigrate.migration.catalogue import every_idea

ROOT = Path(__file__).parents[2]
IDEA = Idea("MG101", "A title", "A summary.", "A why.", "A source", Kind.CONVERTED, "a\nb\n", "a\nc\n")


def test_the_generated_pages_of_this_checkout_are_fresh() -> None:
    assert stale(ROOT, generated(ROOT)) == [], "run python -m dsmigrate.docs"


def test_every_page_says_in_its_first_line_that_it_is_generated() -> None:
    for name, text in pages(every_idea()).items():
        assert text.startswith(f"{MARK}\n"), name
        assert text.endswith("\n")
        assert "\n\n\n" not in text.split("```", maxsplit=1)[0], name


def test_every_code_has_a_page_and_a_line_in_the_index() -> None:
    ideas = every_idea()
    found = pages(ideas)
    assert sorted(found) == sorted(["README.md", *(f"{idea.code}.md" for idea in ideas)])
    for idea in ideas:
        assert f"| [{idea.code}]({idea.code}.md) | {idea.title} | {idea.kind.value} |" in found["README.md"]
        assert idea.title, idea.code
        assert idea.summary, idea.code
        assert idea.why, idea.code
        assert idea.source, idea.code


def test_a_page_shows_what_changes_before_and_after() -> None:
    assert page(IDEA) == (
        f"{MARK}\n\n# MG101: A title\n\nA summary.\n\n**Outcome.** Converted.\n\n## Why\n\nA why.\n\n"
        "## What changes\n\n```diff\n a\n-b\n+c\n```\n\n"
        "## Before\n\n```python\na\nb\n```\n\n## After\n\n```python\na\nc\n```\n\n## Source\n\nA source\n"
    )


def test_a_refusal_shows_what_it_refuses() -> None:
    text = page(Idea("MG901", "A title", "A summary.", "A why.", "A source", Kind.REFUSED, "a\n"))
    assert "## Example\n\n```python\na\n```\n\nNothing is written.\n" in text


def test_the_command_writes_what_is_missing_and_removes_what_is_left_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / CODES / "MG000.md"
    gone.parent.mkdir(parents=True)
    gone.write_text("of a code that is gone\n")
    assert main(["--check"], tmp_path) == 1
    assert f"{gone} is stale: run python -m dsmigrate.docs\n" in capsys.readouterr().out
    assert main([], tmp_path) == 0
    assert not gone.exists()
    assert main(["--check"], tmp_path) == 0
    assert f"removed {gone}\n" in capsys.readouterr().out


def test_the_patch_of_the_readme_is_made_from_its_script(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    readme.write_text(PATCH.sub("```diff\n+old\n```", text, count=1), encoding="utf-8")
    assert main([], tmp_path) == 0
    assert readme.read_text(encoding="utf-8") == refreshed(text)
    assert "+    deepspeed.init_distributed(" in readme.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["no blocks", "```python\nx = 1\n```\n```diff\n```\n"])
def test_a_readme_without_a_script_to_convert_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="README"):
        refreshed(text)
