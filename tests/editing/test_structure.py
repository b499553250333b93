"""Outline, folding, selections, links and relations of a config."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.document import parse
from dsmigrate.editing import View, folding, links, outline, relations, selection
from tests.document.texts import GENERAL, almost_config, jumble, seeded
from tests.editing.marked import cut, marked

CONFIG = """{
  // the batch
  // of one GPU
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "zero_optimization": {
    "stage": 3,
    "cpu_offload": false,
    "offload_param": {"device": "nvme", "nvme_path": "disk"},
    "stage3_prefetch_bucket_size": 5e7
  },
  "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.95]}}
}
"""


def at(place: str, text: str = CONFIG) -> tuple[View, int]:
    """Return the view of a config and the offset of a piece of its text."""
    return View(parse(text)), text.index(place) + 1


def test_the_outline_names_what_says_most_about_a_section() -> None:
    view = View(parse(CONFIG))
    found = {symbol.name: symbol for symbol in outline.symbols(view)}
    zero = found["zero_optimization"]
    assert zero.detail == "stage 3"
    assert [child.name for child in zero.children] == [
        "stage", "cpu_offload", "offload_param", "stage3_prefetch_bucket_size",
    ]  # fmt: skip
    assert [child.deprecated for child in zero.children] == [False, True, False, False]
    assert zero.children[2].detail == "nvme"
    assert found["optimizer"].detail == "AdamW"
    assert found["optimizer"].children[1].children[0].detail == "[0.9, 0.95]"
    assert cut(view, (zero.key_start, zero.key_end)) == '"zero_optimization"'
    assert cut(view, (zero.children[0].start, zero.children[0].end)) == '"stage": 3'


def test_sections_and_blocks_of_comments_fold() -> None:
    view = View(parse(CONFIG))
    found = [(view.document.lines.line_of(fold.start), view.document.lines.line_of(fold.end), fold.is_comment)
             for fold in folding.folds(view)]  # fmt: skip
    assert found == [(0, 12, False), (5, 10, False), (1, 2, True)]


def test_a_selection_grows_from_the_text_of_a_value_to_the_file() -> None:
    view, offset = marked('{"optimizer": {"type": "Ada|mW"}}')
    assert [cut(view, span) for span in selection.selections(view, offset)] == [
        "AdamW",
        '"AdamW"',
        '"type": "AdamW"',
        '{"type": "AdamW"}',
        '"optimizer": {"type": "AdamW"}',
        '{"optimizer": {"type": "AdamW"}}',
    ]


def test_paths_lead_to_what_is_there_and_types_to_their_page(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    view = View(parse(CONFIG), folder=tmp_path)
    found = {cut(view, (link.start, link.end)): link.target for link in links.links(view)}
    assert found["disk"] == tmp_path / "disk"
    assert str(found["AdamW"]).endswith("docs/keys/optimizer_types.md#adamw-optimizer")
    assert list(found) == ["disk", "AdamW"]
    assert not [link for link in links.links(View(parse(CONFIG), folder=tmp_path / "disk")) if link.target == "disk"]


def test_the_page_of_a_type_has_the_heading_that_the_link_names() -> None:
    page = (Path(__file__).parents[2] / "docs" / "keys" / "optimizer_types.md").read_text(encoding="utf-8")
    assert "## `AdamW` (optimizer)" in page


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("stage3_prefetch", ['"stage": 3']),
        ("nvme_path", ['"stage": 3', '"device": "nvme"']),
        ("gradient_acc", ['"train_micro_batch_size_per_gpu": 4']),
    ],
)
def test_a_definition_is_what_decides_about_a_key(place: str, expected: list[str]) -> None:
    view, offset = at(place)
    assert [cut(view, span) for span in relations.depends_on(view, offset)][: len(expected)] == expected


def test_references_are_what_depends_on_a_key() -> None:
    view, offset = at('"stage"')
    found = [cut(view, span).partition(":")[0] for span in relations.references(view, offset, itself=False)]
    assert '"stage3_prefetch_bucket_size"' in found
    assert '"nvme_path"' in found
    assert '"stage"' not in found


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        ('"stage"', "stage cpu_offload offload_param device nvme_path stage3_prefetch_bucket_size"),
        ("stage3_prefetch", "stage stage3_prefetch_bucket_size"),
        ("nvme_path", "stage device nvme_path"),
        ("gradient_acc", "train_micro_batch_size_per_gpu gradient_accumulation_steps"),
        ('"zero_optimization"', "zero_optimization"),
    ],
)
def test_highlights_are_the_key_and_what_depends_on_it_without_their_values(place: str, keys: str) -> None:
    view, offset = at(place)
    assert [cut(view, span) for span in relations.highlights(view, offset)] == [f'"{key}"' for key in keys.split()]


def test_a_key_that_nobody_knows_has_no_relations() -> None:
    view, offset = marked('{"mine|": 1}')
    assert relations.depends_on(view, offset) == (view.document.range_of(("mine",), "member"),)
    assert relations.references(view, offset, itself=False) == ()


@pytest.mark.broad
@GENERAL
@given(st.integers(0, 1 << 30))
def test_nothing_raises_on_any_text(seed: int) -> None:
    random = seeded(seed)
    text = almost_config(random) if random.random() < 0.7 else jumble(random)
    text = text[: random.randint(0, len(text))]
    view = View(parse(text))
    outline.symbols(view)
    links.links(view)
    assert all(0 <= fold.start <= fold.end <= len(text) for fold in folding.folds(view))
    for offset in {0, len(text), *(random.randint(0, len(text)) for _ in range(5))}:
        relations.references(view, offset, itself=True)
        relations.highlights(view, offset)
        relations.depends_on(view, offset)
        found = selection.selections(view, offset)
        assert found[-1] == (0, len(text))
        assert all(a[0] >= b[0] and a[1] <= b[1] and a != b for a, b in pairwise(found))


def test_deep_nesting_is_walked_without_recursion() -> None:
    view = View(parse('{"a":' * 10_000))
    outline.symbols(view)
    folding.folds(view)
    links.links(view)
    found = selection.selections(view, 30_000)
    assert 100 < len(found) < 250
    assert found[-1] == (0, len(view.text))
