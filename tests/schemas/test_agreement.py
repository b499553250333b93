"""The schema against the real DeepSpeed: on configs of our own, and on those of a folder of real ones.

``DSMIGRATE_CORPUS`` names that folder, ``DSMIGRATE_TORCH_PYTHON`` the interpreter that has deepspeed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.benchmarks import schema_agreement as agreement

from .bad import BAD, Fate
from .judge import FILLS, fillable, filled, judge, world
from .support import good_configs


def test_every_key_that_a_consumer_fills_has_a_sample() -> None:
    assert fillable() == {*FILLS, "train_batch_size"}


def test_auto_is_filled_only_where_a_consumer_fills_it() -> None:
    config = {"train_batch_size": "auto", "gradient_clipping": "auto", "zero_optimization": {"sub_group_size": "auto"}}
    assert filled(config) == {"gradient_clipping": 1.0, "zero_optimization": {"sub_group_size": "auto"}}
    assert config["gradient_clipping"] == "auto"


@pytest.mark.parametrize(
    ("total", "micro", "steps", "processes"),
    [(64, 4, 2, 8), (64, 4, 16, 1), (64, 4, 3, 1), (64, None, 2, 1), (64, "4", 2, 1), (0, 1, 1, 1)],
)
def test_the_world_fits_the_batch_keys(total: object, micro: object, steps: object, processes: int) -> None:
    keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    assert world(dict(zip(keys, (total, micro, steps), strict=True))) == processes


@pytest.mark.deepspeed
@pytest.mark.usefixtures("deepspeed")
def test_deepspeed_takes_the_good_configs() -> None:
    paths = [path for _, minor, path in good_configs() if minor is None]
    errors = judge([json.loads(path.read_text(encoding="utf-8")) for path in paths])
    assert {path.stem: error for path, error in zip(paths, errors, strict=True) if error is not None} == {}


@pytest.mark.deepspeed
@pytest.mark.usefixtures("deepspeed")
def test_deepspeed_does_with_the_bad_configs_what_is_stated() -> None:
    cases = [case for case in BAD if case.minor is None]
    errors = judge([case.config for case in cases])
    wrong = {
        case.name: error or "accepted"
        for case, error in zip(cases, errors, strict=True)
        if (case.fate is Fate.REFUSED) is (error is None)
    }
    assert wrong == {}


@pytest.mark.deepspeed
@pytest.mark.usefixtures("deepspeed")
def test_every_disagreement_on_real_configs_has_a_reason() -> None:
    corpus = os.environ.get("DSMIGRATE_CORPUS")
    if corpus is None:
        pytest.skip("DSMIGRATE_CORPUS names no folder of real configs")
    configs, twice, _ = agreement.read(Path(corpus))
    rows = agreement.examine(configs, twice)
    print("\n".join(agreement.table(rows)))
    assert agreement.unexplained(rows) == []
    agreed = sum(row.verdict.startswith("both") for row in rows)
    assert agreed >= 0.9 * len(rows)


def test_a_disagreement_without_a_reason_is_found() -> None:
    stricter = agreement.Row("x", (agreement.Finding("fp16", "not", {}, agreement.UNEXPLAINED),), None)
    laxer = agreement.Row("y", (), "SomeError: nobody has heard of it")
    fine = agreement.Row("z", (), None)
    assert agreement.unexplained([stricter, laxer, fine]) == [stricter, laxer]


def test_findings_name_the_deepest_place() -> None:
    config = {"zero_optimization": {"offload_optimizer": {"device": "cpu", "max_in_cpu": 1}}, "optimizer": 3}
    assert {(found.path, found.keyword) for found in agreement.findings(config)} == {
        ("zero_optimization.offload_optimizer.max_in_cpu", "additionalProperties"),
        ("optimizer", "type"),
    }


def test_what_was_found_is_taken_out() -> None:
    config = {"train_batch_size": "8", "bf16": {"enabled": True, "loss_scale": 0}}
    assert agreement.without(config, list(agreement.findings(config))) == {
        "train_batch_size": 8,
        "bf16": {"enabled": True},
    }
