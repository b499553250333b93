"""``dsmigrate schema``: the JSON Schema of any release."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run

Captured = pytest.CaptureFixture[str]
SCHEMAS = Path(__file__).parents[2] / "schemas" / "deepspeed"


def printed(capsys: Captured, *arguments: str) -> dict[str, object]:
    assert run(["schema", *arguments]) == 0
    schema: dict[str, object] = json.loads(capsys.readouterr().out)
    jsonschema.Draft7Validator.check_schema(schema)
    return schema


def test_without_flags_it_is_that_of_the_newest_release(capsys: Captured) -> None:
    ours = json.loads((SCHEMAS / "deepspeed-config.schema.json").read_text(encoding="utf-8"))
    assert {**printed(capsys), "$id": ""} == {**ours, "$id": ""}


def test_a_release_has_its_own_keys(capsys: Captured) -> None:
    old = jsonschema.Draft7Validator(printed(capsys, "--target-version", "0.9.2"))
    new = jsonschema.Draft7Validator(printed(capsys, "--target-version", "0.19.8"))
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}
    assert not old.is_valid(config)
    assert new.is_valid(config)


def test_a_consumer_fills_what_others_do_not(capsys: Captured) -> None:
    config = {"train_batch_size": "auto", "optimizer": {"type": "AdamW", "params": {"betas": "auto"}}}
    valid = {
        name: jsonschema.Draft7Validator(printed(capsys, "--consumer", name)).is_valid(config)
        for name in ("deepspeed", "accelerate", "transformers")
    }
    assert valid == {"deepspeed": False, "accelerate": False, "transformers": True}


def test_a_release_that_there_is_not_is_wrong_usage(capsys: Captured) -> None:
    assert run(["schema", "--target-version", "0.8.0"]) == 2
    assert "0.8.0" in capsys.readouterr().err
