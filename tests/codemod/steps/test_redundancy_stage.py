"""The ZeRO stage that takes the place of a ZeroRedundancyOptimizer."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.redundancy_scripts import IMPORTS, PLAIN


@pytest.mark.parametrize(("stage", "says"), [(0, "whole optimizer state"), (2, "shards more"), (3, "shards more")])
def test_the_stage_that_was_asked_for_wins_and_is_spoken_of(stage: int, says: str) -> None:
    migrated = convert(imports=IMPORTS, optimizer=PLAIN, to={"zero_stage": stage})
    assert migrated.config["zero_optimization"]["stage"] == stage
    assert says in migrated.said("MG610", PLAIN, Kind.KEPT).message


def test_stage_1_is_what_it_does_and_needs_no_word() -> None:
    migrated = convert(imports=IMPORTS, optimizer=PLAIN, to={"zero_stage": 1})
    assert not [c for c in migrated.changes if c.code == "MG610" and c.kind is Kind.KEPT]


def test_an_optimizer_that_looks_at_layers_gets_stage_0() -> None:
    migrated = convert(
        imports=IMPORTS + "from timm.optim import Lamb\n",
        optimizer="optimizer = ZeroRedundancyOptimizer(model.parameters(), Lamb, lr=args.lr)",
    )
    migrated.said("MG602", "optimizer = Zero", Kind.KEPT)
    told = [change.message for change in migrated.changes if change.code == "MG610"]
    assert not any("the engine shards" in message for message in told)
    assert any(message.startswith("ZeRO stage 0 is in the config, for what else") for message in told)
    assert migrated.config["zero_optimization"]["stage"] == 0


def test_a_config_that_is_given_decides() -> None:
    migrated = convert(imports=IMPORTS, optimizer=PLAIN, to={"config": {"zero_optimization": {"stage": 0}}})
    assert migrated.config["zero_optimization"]["stage"] == 0
    migrated.said("MG610", PLAIN, Kind.KEPT)


def test_the_inner_class_can_move_into_the_config() -> None:
    migrated = convert(
        imports=IMPORTS,
        optimizer="optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, None, lr=3e-4, eps=1e-6)",
        to={"optimizer": "config"},
    )
    assert migrated.config["optimizer"] == {"type": "AdamW", "params": {"lr": 3e-4, "eps": 1e-6, "weight_decay": 0.01}}
    assert "model_parameters=model.parameters()" in migrated.code


def test_a_partial_does_not_move_into_the_config() -> None:
    migrated = convert(
        imports=IMPORTS,
        optimizer="""
            make = partial(ZeroRedundancyOptimizer, optimizer_class=torch.optim.AdamW)
            optimizer = make(model.parameters(), lr=3e-4)
            """,
        to={"optimizer": "config"},
    )
    migrated.said("MG606", "optimizer = make(", Kind.TODO)
    assert "optimizer" not in migrated.config
