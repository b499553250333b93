"""Parameters and moments that are taken from the optimizer while the training runs: whole at ZeRO stage 0 only."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert


def after_step(text: str, **options: int) -> Migrated:
    lines = [
        "for x, y in train_loader:",
        "    loss = F.cross_entropy(model(x.cuda()), y.cuda())",
        "    optimizer.zero_grad()",
        "    loss.backward()",
        "    optimizer.step()",
        *(f"    {line}" for line in text.splitlines()),
        "",
    ]
    return convert(loop="\n".join(lines), to=dict(options))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('print(sum(p.norm() for g in optimizer.param_groups for p in g["params"]))', "print(sum("),
        ('for g in optimizer.param_groups:\n    for p in g["params"]:\n        p.data.clamp_(-1, 1)', 'in g["params"]'),
        ('for i, g in enumerate(optimizer.param_groups):\n    print(i, g["params"][0].mean())', "print(i, g["),
        ('first = optimizer.param_groups[0]["params"]', "first ="),
        ("print(optimizer.state[model.module.head.weight])", "print(optimizer.state"),
        ("for p, state in optimizer.state.items():\n    print(state)", "optimizer.state.items()"),
    ],
)
def test_what_the_optimizer_holds_gets_stage_zero(text: str, line: str) -> None:
    migrated = after_step(text)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG630", line, Kind.KEPT)


def test_a_stage_that_is_asked_for_is_marked() -> None:
    after_step('first = optimizer.param_groups[0]["params"]', zero_stage=1).said("MG630", "first =", Kind.TODO)


@pytest.mark.parametrize(
    "text",
    [
        'for g in optimizer.param_groups:\n    g["lr"] *= 0.9',
        'print(len(optimizer.param_groups[0]["params"]))',
        'rate = optimizer.param_groups[0]["lr"]',
        'batch = {"params": 1}["params"]',
    ],
)
def test_rates_and_counts_keep_the_stage(text: str) -> None:
    migrated = after_step(text)
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG630")


def test_what_happens_before_the_engine_keeps_the_stage() -> None:
    optimizer = (
        "net = Net().cuda()\n"
        "optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)\n"
        'print(sum(p.numel() for g in optimizer.param_groups for p in g["params"]))\n'
        "model = DDP(net)\n"
    )
    migrated = convert(wrap="", optimizer=optimizer)
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG630")


def test_the_steps_of_an_optimizer_class_are_its_own() -> None:
    helpers = """
        class Plain(torch.optim.SGD):
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.data.add_(p.grad, alpha=-group["lr"])
        """
    convert(helpers=helpers, optimizer="optimizer = Plain(model.parameters(), lr=args.lr)\n").silent("MG630")
