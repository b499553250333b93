"""The client optimizer, and what ZeRO does to it."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_kept, convert


def made(expression: str) -> str:
    return f"optimizer = {expression}"


@pytest.mark.parametrize(
    "expression",
    ["torch.optim.AdamW(model.parameters(), lr=args.lr)", "torch.optim.Adam(model.parameters())"],
)
def test_a_tested_optimizer_needs_no_key(expression: str) -> None:
    migrated = convert(optimizer=made(expression))
    assert "zero_allow_untested_optimizer" not in migrated.config
    assert "optimizer" not in migrated.config
    migrated.silent("MG601", "MG602", "MG603")


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("", "torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)"),
        ("", "torch.optim.RMSprop(model.parameters())"),
        ("", "torch.optim.NAdam(model.parameters())"),
        ("from torch.optim import SGD", "SGD(model.parameters(), args.lr)"),
        ("import torch.optim as optim", "optim.Adadelta(model.parameters())"),
        ("from apex.optimizers import FusedSGD", "FusedSGD(model.parameters(), args.lr)"),
    ],
)
def test_an_elementwise_optimizer_is_allowed_at_every_stage(imports: str, expression: str) -> None:
    migrated = convert(imports=imports, optimizer=made(expression))
    assert migrated.config["zero_allow_untested_optimizer"] is True
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.said("MG601", expression, Kind.CONVERTED)
    migrated.silent("MG602", "MG603")


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("from timm.optim import Lamb", "Lamb(model.parameters(), lr=args.lr)"),
        ("from timm.optim import Lars", "Lars(model.parameters(), lr=args.lr)"),
        ("from apex.optimizers import FusedLAMB", "FusedLAMB(model.parameters(), lr=args.lr)"),
        ("", "torch.optim.Adafactor(model.parameters())"),
        ("from transformers import Adafactor", "Adafactor(model.parameters())"),
        ("from muon import Muon", "Muon(model.parameters(), lr=0.02)"),
        ("import bitsandbytes as bnb", "bnb.optim.AdamW8bit(model.parameters())"),
    ],
)
def test_a_layerwise_optimizer_gets_stage_zero(imports: str, expression: str) -> None:
    migrated = convert(imports=imports, optimizer=made(expression))
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert "ZeRO stage 0" in migrated.said("MG602", expression, Kind.KEPT).message


def test_a_layerwise_optimizer_is_marked_where_another_stage_is_asked_for() -> None:
    migrated = convert(
        imports="from timm.optim import Lamb", optimizer=made("Lamb(model.parameters())"), to={"zero_stage": 3}
    )
    migrated.said("MG602", "Lamb(model", Kind.TODO)


def test_an_optimizer_class_of_the_file_that_looks_at_layers_gets_stage_zero() -> None:
    migrated = convert(
        helpers="""
            class Scaled(torch.optim.Optimizer):
                def __init__(self, params, lr):
                    super().__init__(params, {"lr": lr})

                @torch.no_grad()
                def step(self):
                    for group in self.param_groups:
                        for p in group["params"]:
                            if p.grad is not None:
                                p.add_(p.grad / p.grad.norm(), alpha=-group["lr"])
            """,
        optimizer=made("Scaled(model.parameters(), args.lr)"),
    )
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG602", "Scaled(model.parameters(), args.lr)")


def test_an_optimizer_from_another_module_is_named() -> None:
    migrated = convert(imports="from factory import create_optimizer", optimizer=made("create_optimizer(args, model)"))
    migrated.said("MG603", "create_optimizer(args, model)", Kind.KEPT)
    assert migrated.config["zero_allow_untested_optimizer"] is True


@pytest.mark.parametrize(
    "groups",
    [
        '[{"params": model.parameters()}]',
        "(p for p in model.parameters() if p.requires_grad)",
        "filter(lambda p: p.requires_grad, model.parameters())",
        '[{"params": [p for n, p in model.named_parameters() if "bias" not in n], "weight_decay": 0.1}]',
    ],
)
def test_parameter_groups_stay(groups: str) -> None:
    migrated = convert(optimizer=made(f"torch.optim.AdamW({groups}, lr=args.lr)"))
    assert f"optimizer = torch.optim.AdamW({groups}, lr=args.lr)\n" in migrated.section("optimizer")
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_groups_of_parts_of_the_model_are_the_models_own() -> None:
    migrated = convert(
        optimizer="""
            head = model.module.head
            optimizer = torch.optim.AdamW(
                [{"params": model.module.body.parameters()}, {"params": head.parameters(), "lr": 1e-3}], lr=args.lr
            )
            """
    )
    migrated.silent("MG608")
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_parameters_of_the_criterion_need_stage_zero() -> None:
    migrated = convert(
        optimizer="""
            criterion = nn.Linear(10, 10).cuda()
            optimizer = torch.optim.AdamW([*model.parameters(), *criterion.parameters()], lr=args.lr)
            """
    )
    migrated.said("MG608", "criterion.parameters()", Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_groups_added_before_the_engine_stay() -> None:
    migrated = convert(
        optimizer="""
            optimizer = torch.optim.AdamW(model.module.body.parameters(), lr=args.lr)
            optimizer.add_param_group({"params": model.module.head.parameters()})
            """
    )
    code = migrated.section("optimizer")
    assert code.index("add_param_group") < code.index("deepspeed.initialize")
    migrated.silent("MG605")


def test_a_group_added_where_the_optimizer_is_made_is_added_in_time() -> None:
    migrated = convert(
        helpers="""
            def build(model, lr):
                groups = [{"params": [p]} for p in model.parameters()]
                optimizer = torch.optim.SGD(groups[0]["params"], lr=lr)
                for group in groups[1:]:
                    optimizer.add_param_group(group)
                return optimizer
            """,
        optimizer="optimizer = build(model, args.lr)",
    )
    migrated.silent("MG605")


def test_a_group_added_by_a_helper_of_the_loop_is_too_late() -> None:
    migrated = convert(
        helpers="""
            def thaw(optimizer, layer):
                optimizer.add_param_group({"params": layer.parameters()})
            """,
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x.cuda()), y.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            thaw(optimizer, model.module.body)
            """,
    )
    migrated.said("MG605", "optimizer.add_param_group(", Kind.TODO)


def test_groups_added_while_training_are_left_to_the_person() -> None:
    line = 'optimizer.add_param_group({"params": model.module.body.parameters()})'
    migrated = convert(
        optimizer=made("torch.optim.AdamW(model.module.head.parameters(), lr=args.lr)"),
        loop=f"""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                {line}
            """,
    )
    migrated.said("MG605", line, Kind.TODO)


def test_freezing_while_training_needs_stage_zero() -> None:
    migrated = convert(
        loop="""
            for epoch in range(args.epochs):
                for p in model.module.body.parameters():
                    p.requires_grad = epoch > 3
                for x, y in train_loader:
                    loss = F.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            """
    )
    migrated.said("MG607", "p.requires_grad = epoch > 3", Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_freezing_before_the_engine_is_fine() -> None:
    migrated = convert(wrap="net = Net().cuda()\nnet.body.requires_grad_(False)\nmodel = DDP(net)")
    migrated.silent("MG607", "MG706")
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_learning_rates_are_read_from_the_client_optimizer() -> None:
    check_kept("end", 'print(optimizer.param_groups[0]["lr"])\n')
