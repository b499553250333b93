"""How common keys are, counted in a folder of configs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsmigrate.facts.common import counted, main
from dsmigrate.facts.completion import completion
from dsmigrate.facts.sources import FactsError, Sources, read

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "deepspeed"
CONFIGS = [
    {"zero_optimization": {"stage": 2}, "optimizer": {"type": "adamw", "params": {"lr": 0.1, "my_own": 1}}},
    {"zero_optimization": {"stage": 3, "prefetch_bucket_size": 5}, "bfloat16": {"enabled": True}},
    *[{"zero_optimization": {"stage": 2}, "my_own_section": {"stage": 2}}] * 40,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, config in enumerate(CONFIGS):
        (tmp_path / f"{number}.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "list.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    return tmp_path


def test_keys_count_among_the_sections_that_may_hold_them(folder: Path) -> None:
    ranks, files = counted(folder)
    assert files == len(CONFIGS)
    assert ranks == {
        "bf16": 5,
        "bf16.enabled": 3,
        "optimizer": 5,
        "optimizer.params": 3,
        "optimizer.params.lr": 3,
        "optimizer.type": 3,
        "optimizer.type=AdamW": 3,
        "zero_optimization": 1,
        "zero_optimization.stage": 1,
        "zero_optimization.stage3_prefetch_bucket_size": 5,
        "zero_optimization.stage=2": 1,
        "zero_optimization.stage=3": 5,
    }


def test_the_command_writes_ranks_and_no_config(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "schemas" / "deepspeed").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(main, [str(folder)])
    assert told.exit_code == 0, told.output
    assert told.output == f"wrote schemas/deepspeed/common.json: 12 keys of {len(CONFIGS)} configs\n"
    written = json.loads((tmp_path / "schemas" / "deepspeed" / "common.json").read_text(encoding="utf-8"))
    assert written.keys() == {"about", "files", "ranks"}


def test_the_ranks_that_are_kept_are_of_known_keys() -> None:
    kept = read(FOLDER).common
    assert kept["files"] > 200
    assert set(kept["ranks"].values()) == {1, 2, 3, 4, 5}
    assert kept["ranks"]["zero_optimization"] == 1


@pytest.mark.parametrize(
    "table",
    [
        {"when": {"fp16.enabled": True}},
        {"code": "DS300"},
        {"code": "DS300", "when": {"fp16.enabled": True}, "why": "because"},
        {"code": "DS300", "when": {"fp16.enabled": {"more": 1}}},
        {"code": "DS300", "when": {"fp16.enabled": {"not": 1, "given": True}}},
    ],
)
def test_a_refusal_that_cannot_be_read_is_an_error(table: dict[str, object]) -> None:
    sources = Sources((), {}, {}, {}, {}, {}, {}, refused={"refused": [table]})
    with pytest.raises(FactsError, match=r"refused\.toml"):
        completion(sources)
