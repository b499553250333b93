"""A migration that chooses stage and offload for a model and its GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import Options
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.fields import Value
from dsmigrate.settings.options import resolve
from tests.support.migrating import migrate_source

EXAMPLE = Path(__file__).parents[2] / "examples" / "param_groups_adamw.py"


def options(folder: Path, **flags: Value) -> Options:
    """Return the options of flags."""
    return resolve(folder, {name.replace("_", "-"): value for name, value in flags.items()}).options


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"params": "7b"}, "--params chooses stage and offload together with --gpu-memory"),
        ({"gpu_memory": 24}, "--gpu-memory chooses stage and offload together with --params"),
        ({"gpus": 8}, "--gpus chooses"),
        ({"params": "7x", "gpu_memory": 24}, "--params '7x' is not a number of parameters"),
        ({"params": "7b", "gpu_memory": 0}, "--gpus and --gpu-memory (in GiB) are at least 1"),
        ({"params": "70b", "gpu_memory": 8}, "nothing fits 70b parameters in fp32 on 1 GPU of 8 GiB"),
        ({"params": "7b", "gpu_memory": 24, "zero_stage": 1}, "nothing fits 7b parameters in fp32 on 1 GPU of 24 GiB"),
    ],
)
def test_what_cannot_be_planned_is_said(tmp_path: Path, flags: dict[str, Value], says: str) -> None:
    with pytest.raises(SettingsError) as raised:
        options(tmp_path, **flags)
    assert says in str(raised.value)


def test_a_config_that_is_there_has_chosen(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text("{}")
    with pytest.raises(SettingsError, match="a config is given, which has stage and offload"):
        options(tmp_path, params="7b", gpu_memory=24, config=str(tmp_path / "ds.json"))


@pytest.mark.parametrize(
    ("flags", "stage", "offload"),
    [
        ({"params": "125m", "gpu_memory": 80, "gpus": 8}, 0, "none"),
        ({"params": "7b", "gpu_memory": 80, "gpus": 8, "precision": "bf16"}, 2, "none"),
        ({"params": "7b", "gpu_memory": 24, "gpus": 8}, 3, "none"),
        ({"params": "7b", "gpu_memory": 24, "precision": "bf16"}, 2, "cpu"),
        ({"params": "7b", "gpu_memory": 80, "gpus": 8, "zero_stage": 3}, 3, "none"),
        ({"params": "7b", "gpu_memory": 80, "gpus": 8, "offload": "cpu", "precision": "bf16"}, 2, "cpu"),
    ],
)
def test_stage_and_offload_are_the_fastest_that_fit(
    tmp_path: Path, flags: dict[str, Value], stage: int, offload: str
) -> None:
    found = options(tmp_path, **flags)
    assert (found.zero_stage, found.offload) == (stage, offload)


def test_the_loss_counts_in_what_fits(tmp_path: Path) -> None:
    """The logits of 50,257 words take most of a small GPU, unless the loss is fused with the head."""
    small: dict[str, Value] = {"params": "125m", "gpu_memory": 4, "gpus": 8, "precision": "bf16"}
    assert "activation checkpointing" in options(tmp_path, **small).chosen_for
    assert "activation checkpointing" not in options(tmp_path, **small, loss="fused").chosen_for


def test_the_emitted_config_has_what_was_chosen_and_the_report_says_why(tmp_path: Path) -> None:
    found = migrate_source(
        EXAMPLE.read_bytes(), path="train.py", options=options(tmp_path, params="7b", gpu_memory=24, precision="bf16")
    )
    assert found.config is not None
    zero = found.config["zero_optimization"]
    assert zero["stage"] == 2
    assert zero["offload_optimizer"] == {"device": "cpu"}
    assert zero["reduce_bucket_size"] == 200_000_000
    assert "overlap_comm" not in zero
    (reason,) = [
        change.reason for change in found.changes if change.code == "MG703" and change.message.startswith("ZeRO-2: ")
    ]
    assert "the fastest that fits 7b parameters in bf16 on 1 GPU of 24 GiB with activation checkpointing" in reason
