"""The comparisons that pages show are made from the configs that they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.docs.comparison import refreshed
from dsmigrate.settings.errors import SettingsError

ROOT = Path(__file__).parents[2]
PAGE = """# A page

<!-- old -->
```json
{"train_batch_size": 8}
```

<!-- new -->
```json
{"train_batch_size": 16}
```

<!-- said%s -->
```text
stale
```

The end.
"""


def test_the_block_is_made_anew_and_the_rest_stays() -> None:
    page = refreshed(PAGE % "")
    assert "stale" not in page
    assert "```text\nold.json → new.json\nChanges training: effective batch 8 → 16\n" in page
    assert page.startswith(PAGE.partition("<!-- said")[0])
    assert page.endswith("```\n\nThe end.\n")
    assert refreshed(page) == page


def test_settings_stand_in_the_mark() -> None:
    page = refreshed(PAGE % " consumer=accelerate world-size=4")
    assert "read by Accelerate, as asked for" in page
    with pytest.raises(SettingsError):
        refreshed(PAGE % " world-size=none")


@pytest.mark.parametrize("mark", ["old", "new", "said"])
def test_a_page_without_a_block_is_an_error(mark: str) -> None:
    with pytest.raises(ValueError, match="the page has no two configs, or no comparison of them"):
        refreshed((PAGE % "").replace(f"<!-- {mark}", "<!-- x"))


@pytest.mark.parametrize("name", ["README.md", "docs/diff.md"])
def test_the_pages_of_this_checkout_are_fresh(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert refreshed(text) == text, "run python -m dsmigrate.docs"
