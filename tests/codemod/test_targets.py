"""What the target release changes, against the facts and in what is written."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from dsmigrate.codemod.catalogue import example
from dsmigrate.codemod.model import FileResult, Kind, Options, Status
from dsmigrate.codemod.targets import Difference, differences, holds
from dsmigrate.docs.targets import page
from dsmigrate.knowledge import knowledge
from dsmigrate.settings.releases import releases
from tests.support.migrating import migrate_source

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
    ("release", "stage", "is_marked"),
    [("0.13.1", 0, False), ("0.13.2", 0, True), ("0.13.2", 2, False), ("0.13.3", 0, False)],
)
def test_a_clip_is_marked_where_the_release_clips_the_wrong_way_round(
    release: str, stage: int, *, is_marked: bool
) -> None:
    for name, clips in (("warmup_resume.py", True), ("cifar_schedules.py", False)):
        changes = migrated(name, target_version=release, zero_stage=stage).changes
        found = [change for change in changes if "the wrong way round" in change.message]
        assert bool(found) is (is_marked and clips)
        assert all((change.code, change.kind) == ("MG424", Kind.TODO) for change in found)


@pytest.mark.parametrize(
    ("release", "managed"),
    [
        ("0.12.6", False),
        ("0.13.2", False),
        ("0.17.5", False),
        ("0.17.6", False),
        ("0.18.2", False),
        ("0.18.3", False),
        ("0.19.3", False),
        ("0.19.4", True),
        ("0.19.8", True),
    ],
)
def test_accumulation_is_written_as_the_release_needs_it(release: str, *, managed: bool) -> None:
    result = migrated(WINDOWS, target_version=release)
    assert result.new_source is not None
    assert result.config is not None
    assert result.status is Status.CONVERTED
    text = result.new_source.decode()
    assert ("managed_gradient_accumulation" in result.config) is managed
    assert ("    ddp.set_gradient_accumulation_boundary(not is_accumulating)\n" in text) is not managed
    assert "set_gradient_accumulation_boundary" not in text.partition("ddp.backward(")[2]
    assert result.config["zero_optimization"]["stage"] == 1


def test_a_stage_that_loses_micro_batches_is_marked_where_it_was_asked_for() -> None:
    result = migrated(WINDOWS, target_version="0.18.1", zero_stage=2)
    (todo,) = [change for change in result.changes if change.kind is Kind.TODO]
    assert "DeepSpeed 0.18.1 keeps only the last micro-batch of a window at ZeRO 2" in todo.message
    assert b"# TODO(dsmigrate MG406)" in (result.new_source or b"")
    for stage in (0, 1, 3):
        assert not [
            c for c in migrated(WINDOWS, target_version="0.18.1", zero_stage=stage).changes if c.kind is Kind.TODO
        ]


@pytest.mark.parametrize(("release", "is_undone"), [("0.12.0", True), ("0.13.1", True), ("0.13.2", False)])
@pytest.mark.parametrize("asked", [{}, {"zero_stage": 1}, {"zero_stage": 3}, {"offload": "cpu"}], ids=str)
def test_the_update_before_the_training_is_undone_at_every_stage(
    release: str, asked: dict[str, object], *, is_undone: bool
) -> None:
    result = migrated("slurm_env.py", target_version=release, **asked)
    assert result.new_source is not None
    assert result.config is not None
    assert (b"\n    ds_compat.forget_first_step(network)\n" in result.new_source) is is_undone
    assert result.config["zero_optimization"]["stage"] == asked.get("zero_stage", 2)
    assert not [change for change in result.changes if change.kind is Kind.TODO]


@pytest.mark.parametrize(
    ("release", "key", "entered"),
    [("0.12.6", False, False), ("0.17.1", False, False), ("0.17.2", False, True), ("0.17.6", True, False)],
)  # fmt: skip
def test_a_region_stays_where_the_engine_leaves_it_alone(release: str, *, key: bool, entered: bool) -> None:
    result = migrated("bert_mlm_bf16.py", target_version=release)
    assert result.new_source is not None
    assert result.config is not None
    assert b"torch.autocast(" in result.new_source
    assert ("torch_autocast" in result.config) is key
    assert (b"enter_in_forward" in result.new_source) is entered
    assert not [change for change in result.changes if change.kind is Kind.TODO]


@pytest.mark.parametrize(
    ("release", "stage"),
    [("0.12.6", 1), ("0.13.5", 2), ("0.17.5", 0), ("0.17.6", 0), ("0.17.6", 2), ("0.18.0", 0), ("0.19.8", 3)],
)
def test_a_scaler_drives_the_engine_of_every_release(release: str, stage: int) -> None:
    result = migrated("vit_fp16_scaler.py", target_version=release, zero_stage=stage)
    assert b"ds_compat.use_grad_scaler(" in (result.new_source or b"")
    assert not [change for change in result.changes if change.kind is Kind.TODO and change.code == "MG302"]


@pytest.mark.parametrize(("release", "is_marked"), [("0.14.3", False), ("0.17.5", True), ("0.17.6", True)])
def test_a_region_known_only_in_the_loop_is_marked_where_the_engine_switches_it_off(
    release: str, *, is_marked: bool
) -> None:
    source = example("MG307", "before").encode()
    result = migrate_source(source, path="train.py", options=Options(target_version=release))
    assert result.config is not None
    assert "torch_autocast" not in result.config
    assert [change.code for change in result.changes if change.kind is Kind.TODO] == ["MG307"] * is_marked


@pytest.mark.parametrize(("release", "key"), [("0.14.3", False), ("0.17.6", True)])
def test_apex_has_a_counterpart_only_where_torch_autocast_is_right(release: str, *, key: bool) -> None:
    source = example("MG304", "before").encode()
    result = migrate_source(source, path="train.py", options=Options(target_version=release))
    assert result.config is not None
    assert ("torch_autocast" in result.config) is key
    todos = [change.message for change in result.changes if change.kind is Kind.TODO and change.code == "MG304"]
    assert [message for message in todos if "has nothing like apex amp" in message] == todos
    assert bool(todos) is not key


def test_the_page_names_every_difference() -> None:
    assert all(entry.title in page() and entry.source in page() for entry in differences().values())
