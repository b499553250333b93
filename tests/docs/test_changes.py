from __future__ import annotations

import re

import pytest

from dsmigrate.diff.registry import Example, Explanation, every_explanation
from dsmigrate.docs.changes import INDEX, MARK, page, pages


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return pages(every_explanation())


def test_every_explanation_has_a_page_and_a_line_in_the_index(found: dict[str, str]) -> None:
    assert sorted(found) == sorted([INDEX, *(f"{item.code}.md" for item in every_explanation())])
    for item in every_explanation():
        assert f"| [{item.code}]({item.code}.md) | {item.name} | {item.summary} |" in found[INDEX]


def test_every_page_is_marked_and_whole(found: dict[str, str]) -> None:
    for name, text in found.items():
        assert text.startswith(f"{MARK}\n"), name
        assert text.endswith("\n"), name
        assert "\n\n\n" not in text, name
        assert text.count("```") % 2 == 0, name
        for address in re.findall(r"<(http[^>]+)>", text):
            assert " " not in address


def test_a_page_shows_the_change_and_what_is_said_of_it() -> None:
    item = next(item for item in every_explanation() if item.code == "DF301")
    text = page(item)
    assert ' {\n   "train_batch_size": 8,\n-  "gradient_clipping": 1.0\n+  "gradient_clipping": 0.5\n }' in text
    assert "> **warning: numerics.** Gradients are clipped to the norm 0.5 instead of 1.0.\n" in text
    assert "DeepSpeed 0.19.2 → newest:" in text


def test_an_example_without_a_word_is_not_shown() -> None:
    example = Example('{"a": 1}', '{"a": 2}', "")
    item = Explanation("DF999", "x", "A summary.", "A why.", ("a/file.py",), (example,), lambda _: [])
    assert '"a"' not in page(item)
