"""``--optimizer config`` moves the optimizer into the config, where that is provable."""

from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

TO = {"optimizer": "config"}


def moved(expression: str, **parts: str) -> Migrated:
    return convert(optimizer=f"optimizer = {expression}", to=TO, **parts)


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("from timm.optim import Lamb", "Lamb(model.parameters())"),
        ("", "torch.optim.ASGD(model.parameters())"),
        ("", "torch.optim.AdamW(model.parameters(), **vars(args))"),
        ("from factory import build", "build(model)"),
    ],
)
def test_an_optimizer_that_cannot_be_moved_stays(imports: str, expression: str) -> None:
    migrated = moved(expression, imports=imports)
    assert "optimizer" not in migrated.config
    assert f"optimizer = {expression}" in migrated.section("optimizer")
    migrated.said("MG606", "optimizer = ", Kind.TODO)


def test_a_scheduler_built_before_the_engine_keeps_the_optimizer() -> None:
    migrated = convert(
        wrap="model = Net().cuda()",
        optimizer="""
            optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
            model = DDP(model)
            """,
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
            """,
        to=TO,
    )
    assert "optimizer" not in migrated.config
    migrated.said("MG606", "optimizer = ", Kind.TODO)


@pytest.mark.parametrize(
    ("expression", "section"),
    [
        (
            "torch.optim.AdamW(model.parameters(), lr=1e-4)",
            {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}},
        ),
        (
            "torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.95))",
            {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.0, "adam_w_mode": False, "betas": [0.9, 0.95]}},
        ),
        (
            "torch.optim.AdamW(model.parameters(), weight_decay=0.1, eps=1e-6, fused=True)",
            {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1, "eps": 1e-6}},
        ),
        (
            "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)",
            {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "nesterov": True}},
        ),
    ],
)
def test_type_and_parameters_are_written_out(expression: str, section: dict[str, Any]) -> None:
    migrated = moved(expression)
    assert migrated.config["optimizer"] == section
    code = migrated.section("optimizer")
    assert "torch.optim" not in code
    assert "model_parameters=model.parameters()" in code
    assert code.endswith("optimizer = model.basic_optimizer\n")
    migrated.said("MG606", "optimizer = ", Kind.CONVERTED)


def test_parameters_from_options_follow_them() -> None:
    migrated = moved("torch.optim.AdamW(model.parameters(), lr=args.lr)")
    assert 'ds_config["optimizer"]["params"]["lr"] = args.lr\n' in migrated.section("optimizer")
    assert migrated.config["optimizer"]["params"] == {"lr": 3e-4, "weight_decay": 0.01}


def test_the_scheduler_works_on_the_client_object() -> None:
    migrated = moved(
        "torch.optim.AdamW(model.parameters(), lr=1e-3)",
        resume="scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)",
    )
    assert migrated.code.index("optimizer = model.basic_optimizer") < migrated.code.index("StepLR(optimizer")
