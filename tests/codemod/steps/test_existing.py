"""A script fitted to a DeepSpeed config that is there already."""

from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

CLIPPING = """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
"""
FIXED = "dataset = Digits()\ntrain_loader = DataLoader(dataset, batch_size=64)"


def fitted(config: dict[str, Any], **parts: str) -> Migrated:
    return convert(to={"config": config}, data=FIXED, **parts)


def test_a_config_that_says_the_same_gets_nothing_added() -> None:
    config = {
        "train_micro_batch_size_per_gpu": 64,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 0.5,
        "zero_optimization": {"stage": 2},
    }
    migrated = fitted(config, loop=CLIPPING)
    assert migrated.config == config
    migrated.silent("MG704", "MG709")


def test_keys_of_the_config_that_do_not_concern_the_script_stay() -> None:
    config = {"steps_per_print": 7, "wall_clock_breakdown": True, "comms_logger": {"enabled": True}}
    migrated = fitted(dict(config))
    assert {key: migrated.config[key] for key in config} == config
    migrated.silent("MG704")


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_the_stage_of_the_config_is_the_stage(stage: int) -> None:
    migrated = fitted({"zero_optimization": {"stage": stage, "overlap_comm": False}})
    assert migrated.config["zero_optimization"] == {"stage": stage, "overlap_comm": False}
    migrated.silent("MG704")
    assert f"ZeRO stage {stage}" in migrated.said("MG703", "optimizer = ").message


def test_the_stage_of_the_config_decides_what_stage_three_needs() -> None:
    migrated = fitted(
        {"zero_optimization": {"stage": 3}}, end='if rank == 0:\n    torch.save(model.module.state_dict(), "w.pt")'
    )
    assert "GatheredParameters" in migrated.section("end")


def test_what_the_config_lacks_is_added() -> None:
    migrated = fitted({"zero_optimization": {"stage": 1}}, loop=CLIPPING)
    assert migrated.config["gradient_clipping"] == 0.5
    assert migrated.said("MG709", "optimizer = ", Kind.CONVERTED)


def test_a_missing_clip_is_added_as_none() -> None:
    assert fitted({"zero_optimization": {"stage": 1}}).config["gradient_clipping"] == 0.0


def test_a_contradiction_is_reported_and_the_value_stays() -> None:
    migrated = fitted({"gradient_clipping": 1.0, "zero_optimization": {"stage": 2}}, loop=CLIPPING)
    assert migrated.config["gradient_clipping"] == 1.0
    (change,) = [c for c in migrated.changes if c.code == "MG704"]
    assert change.kind is Kind.TODO
    assert "gradient_clipping" in change.message
    assert "1.0" in change.message
    assert "0.5" in change.message


def test_numbers_that_are_equal_do_not_contradict() -> None:
    fitted({"gradient_clipping": 0, "zero_optimization": {"stage": 2}}).silent("MG704")


def test_auto_is_filled_in() -> None:
    migrated = fitted({"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto"}, loop=CLIPPING)
    assert migrated.config["train_micro_batch_size_per_gpu"] == 64
    assert migrated.config["gradient_clipping"] == 0.5


@pytest.mark.parametrize("section", ["optimizer", "scheduler"])
def test_a_section_that_the_script_replaces_is_reported(section: str) -> None:
    migrated = fitted({section: {"type": "AdamW", "params": {"lr": 1e-3}}})
    assert any(c.code == "MG704" and section in c.message and c.kind is Kind.TODO for c in migrated.changes)


def test_an_option_of_the_script_decides_over_the_config() -> None:
    migrated = convert(to={"config": {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}})
    assert 'ds_config["train_micro_batch_size_per_gpu"] = args.batch_size' in migrated.section("optimizer")
    assert not [c for c in migrated.changes if c.code == "MG704" and c.kind is Kind.TODO]


def test_a_total_batch_size_stands_for_the_others() -> None:
    migrated = fitted({"train_batch_size": 512, "zero_optimization": {"stage": 2}})
    assert migrated.config["train_batch_size"] == 512
    assert "train_micro_batch_size_per_gpu" not in migrated.config


def test_half_precision_of_the_config_beside_autocast_of_the_script_is_reported() -> None:
    migrated = fitted(
        {"bf16": {"enabled": True}, "zero_optimization": {"stage": 2}},
        loop=CLIPPING.replace(
            "    loss = F.cross_entropy(model(x), y)\n",
            '    with torch.autocast("cuda", dtype=torch.bfloat16):\n        loss = F.cross_entropy(model(x), y)\n',
        ),
    )
    assert any(c.code == "MG704" and c.kind is Kind.TODO for c in migrated.changes), migrated.told()


def test_the_config_that_was_given_is_not_changed() -> None:
    config = {"zero_optimization": {"stage": 1}}
    fitted(config)
    assert config == {"zero_optimization": {"stage": 1}}
