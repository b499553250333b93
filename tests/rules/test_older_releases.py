"""What rules say of a config for older releases, where these do otherwise than today's."""

from __future__ import annotations

import json

import pytest

from dsmigrate.document import apply, parse
from dsmigrate.rules import Finding, Settings, check

BF16 = {"train_batch_size": 8, "bf16": {"enabled": True}}
OFFLOAD = {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
COSINE = {
    "train_batch_size": 8,
    "zero_optimization": {"stage": 2},
    "optimizer": {"type": "AdamW", "params": {"weight_decay": 0.0}},
    "scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 100}},
}
HALF = BF16 | {"optimizer": {"type": "AdamW", "legacy_fusion": True, "params": {}}}
RATES = {"cycle_min_lr": [1e-5, 1e-6], "cycle_max_lr": [1e-4, 1e-5]}
CYCLE = {"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": RATES}}
NONE = {"train_batch_size": 8, "steps_per_print": None}
PEAK = {"total_num_steps": 10, "warmup_max_lr": None}
MUON = {"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"ns_method": "newton"}}}
ZENFLOW = {
    "train_batch_size": 8,
    "optimizer": {"type": "AdamW", "params": {"lr": 0.1}},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 1}},
}


def found(config: object, version: str, code: str) -> list[Finding]:
    return check(parse(json.dumps(config)), Settings(version=version, select=(code,)))


def accumulation(dtype: str, stage: int = 0) -> dict[str, object]:
    return BF16 | {"data_types": {"grad_accum_dtype": dtype}, "zero_optimization": {"stage": stage}}


@pytest.mark.parametrize(
    ("code", "config", "with_it", "without"),
    [
        ("DS340", accumulation("bf16"), "0.17.5", "0.17.6"),
        ("DS340", accumulation("fp32"), "0.18.5", "0.18.4"),
        ("DS340", accumulation("fp32", 2), "0.10.0", "0.10.1"),
        (
            "DS525",
            {"train_batch_size": 8, "zero_optimization": {"offload_optimizer": {"ratio": 0.5}}},
            "0.15.0",
            "0.14.5",
        ),
        ("DS642", MUON, "0.19.0", "0.18.9"),
        ("DS675", HALF, "0.17.6", "0.17.5"),
        ("DS730", CYCLE, "0.19.5", "0.19.6"),
        ("DS730", {"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": PEAK}}, "0.17.1", "0.17.2"),
        ("DS970", ZENFLOW, "0.19.2", "0.19.3"),
        (
            "DS970",
            {"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 0}},
            "0.19.5",
            "0.19.6",
        ),
        ("DS801", BF16 | {"data_types": {"buffer_dtype": "auto"}}, "0.19.8", "0.18.9"),
        (
            "DS472",
            {"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}}},
            "0.18.6",
            "0.18.5",
        ),
    ],
)
def test_a_rule_holds_for_the_releases_that_do_as_it_says(
    code: str, config: object, with_it: str, without: str
) -> None:
    assert found(config, with_it, code)
    assert not found(config, without, code)


def test_what_fails_where_is_told_as_the_release_does() -> None:
    effects = [found(accumulation("int8", 1), version, "DS341")[0].effect.value for version in ("0.18.9", "0.19.8")]
    assert effects == ["risky", "crash"]
    nvme = {"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}}
    effects = [found(nvme, version, "DS515")[0].effect.value for version in ("0.10.0", "0.10.1")]
    assert effects == ["ignored", "misread"]
    params = {"cycle_min_lr": 0.1, "cycle_max_lr": 1, "cycle_first_step_size": 0}
    assert found({"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": params}}, "0.9.5", "DS732")


def test_what_is_recommended_is_there() -> None:
    assert "DeepSpeedCPULion" in found(OFFLOAD, "0.17.6", "DS555")[0].message
    assert "DeepSpeedCPULion" not in found(OFFLOAD, "0.17.5", "DS555")[0].message
    assert "WarmupCosineLR" in found(COSINE, "0.19.8", "DS775")[0].message
    assert "WarmupCosineLR" not in found(COSINE, "0.9.5", "DS775")[0].message


def test_null_stands_for_no_reports_since_there_is_a_test_for_it() -> None:
    assert [one.effect.value for one in found(NONE, "0.15.1", "DS1")] == ["crash"]
    assert found(NONE, "0.15.2", "DS1") == []


def test_a_key_is_not_moved_into_a_section_that_cannot_be_read_without_another() -> None:
    text = '{"train_batch_size": 8, "bf16": {"enabled": true, "loss_scale": 0}}'
    fixes = check(parse(text), Settings(version="0.16.9", select=("DS102",)))[0].fixes
    assert [apply(text, fix.edits) for fix in fixes] == ['{"train_batch_size": 8, "bf16": {"enabled": true}}']
