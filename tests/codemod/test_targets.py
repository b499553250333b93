"""What the target release changes, against the facts and in what is written."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from dsmigrate.codemod.migrate import migrate_source
from dsmigrate.codemod.model import FileResult, Kind, Options
from dsmigrate.codemod.targets import Difference, differences, holds
from dsmigrate.docs.targets import page
from dsmigrate.knowledge import knowledge
from dsmigrate.settings.releases import releases

EXAMPLES = Path(__file__).parents[2] / "examples"
RELEASES = [release for release in releases() if int(release.split(".")[1]) >= 12]
EVERY_MINOR = [
    list(group)[-1] for _, group in itertools.groupby(RELEASES, key=lambda release: release.rsplit(".", 1)[0])
]
WINDOWS = "no_sync_accum.py"


def migrated(name: str, **options: object) -> FileResult:
    return migrate_source((EXAMPLES / name).read_bytes(), path=name, options=Options(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", [d for d in differences().values() if d.key], ids=lambda d: d.id)
def test_a_key_came_or_changed_with_the_release_that_is_named(entry: Difference) -> None:
    before = RELEASES[RELEASES.index(entry.since) - 1]
    there = [knowledge(release).key(entry.key) for release in (before, entry.since)]
    (before_it, with_it) = [key for key in there if key is not None]
    assert with_it.status.value == "present"
    assert before_it.status.value == "not yet" or before_it.default != with_it.default


def test_spans_begin_and_end_with_releases_that_there_are() -> None:
    for entry in differences().values():
        assert entry.since in RELEASES
        assert not entry.until or entry.until in RELEASES
        assert next(release for release in RELEASES if holds(entry.id, release)) == entry.since


@pytest.mark.parametrize("release", EVERY_MINOR)
def test_an_emitted_config_has_only_keys_that_the_release_knows(release: str) -> None:
    known = knowledge(release)
    for name in ("autocast_ctx.py", "vit_fp16_scaler.py", WINDOWS):
        result = migrated(name, target_version=release)
        assert result.config is not None, name
        unknown = [key for key in result.config if (found := known.key(key)) is None or found.status.value != "present"]
        assert not unknown, (name, release)


@pytest.mark.parametrize(
    ("release", "managed", "stage"),
    [("0.12.6", False, 2), ("0.17.5", False, 2), ("0.17.6", False, 0), ("0.18.2", False, 0), ("0.18.3", False, 2),
     ("0.19.3", False, 2), ("0.19.4", True, 2), ("0.19.8", True, 2)],
)  # fmt: skip
def test_accumulation_is_written_as_the_release_needs_it(release: str, *, managed: bool, stage: int) -> None:
    result = migrated(WINDOWS, target_version=release)
    assert result.new_source is not None
    assert result.config is not None
    calls = {node.attr for node in ast.walk(ast.parse(result.new_source)) if isinstance(node, ast.Attribute)}
    assert ("managed_gradient_accumulation" in result.config) is managed
    assert ("set_gradient_accumulation_boundary" in calls) is not managed
    assert result.config["zero_optimization"]["stage"] == stage


def test_a_stage_that_loses_micro_batches_is_marked_where_it_was_asked_for() -> None:
    result = migrated(WINDOWS, target_version="0.18.1", zero_stage=2)
    (todo,) = [change for change in result.changes if change.kind is Kind.TODO]
    assert "DeepSpeed 0.18.1 loses all micro-batches of a window but the last at ZeRO 2" in todo.message
    assert b"# TODO(dsmigrate MG406)" in (result.new_source or b"")
    for stage in (0, 1, 3):
        assert not [
            c for c in migrated(WINDOWS, target_version="0.18.1", zero_stage=stage).changes if c.kind is Kind.TODO
        ]


def test_the_page_names_every_difference() -> None:
    assert all(entry.title in page() and entry.source in page() for entry in differences().values())
