"""Groups that DeepSpeed takes out because they are empty, where the script tells groups apart by their number."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

FILTERED = """
head = [p for n, p in model.named_parameters() if n.startswith("head")]
body = [p for n, p in model.named_parameters() if not n.startswith("head")]
optimizer = torch.optim.SGD([{"params": head}, {"params": body, "lr": 0.01}], lr=args.lr)
"""
FILLED = """
decay, rest = [], []
for p in model.parameters():
    (decay if p.ndim > 1 else rest).append(p)
optimizer = torch.optim.SGD([{"params": rest}, {"params": decay}], lr=args.lr)
"""
WHOLE = """
groups = [{"params": model.module.body.parameters()}, {"params": model.module.head.parameters()}]
optimizer = torch.optim.SGD(groups, lr=args.lr)
"""
LOOP = """
for x, y in train_loader:
    LINE
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
BY_NUMBER = [
    'optimizer.param_groups[0]["lr"] *= 0.9',
    'for i, group in enumerate(optimizer.param_groups): group["lr"] = 0.1 * i',
    'for group in optimizer.param_groups[1:]: group["lr"] *= 0.9',
]
ASSERTED = 'assert all(g["params"] for g in optimizer.param_groups)'


@pytest.mark.parametrize("groups", [FILTERED, FILLED])
@pytest.mark.parametrize("line", BY_NUMBER)
def test_groups_told_by_number_are_asserted_not_to_be_empty(groups: str, line: str) -> None:
    migrated = convert(optimizer=groups, loop=LOOP.replace("LINE", line))
    migrated.said("MG412", "optimizer.param_groups", Kind.KEPT)
    assert ASSERTED in migrated.code
    assert migrated.code.index(ASSERTED) < migrated.code.index("deepspeed.initialize(")


@pytest.mark.parametrize(
    ("groups", "line"),
    [(WHOLE, BY_NUMBER[0]), (FILTERED, 'for group in optimizer.param_groups: group["lr"] *= 0.9'), (FILTERED, "pass")],
)
def test_groups_that_are_whole_or_treated_alike_are_not(groups: str, line: str) -> None:
    migrated = convert(optimizer=groups, loop=LOOP.replace("LINE", line))
    migrated.silent("MG412")
    assert ASSERTED not in migrated.code


FROZEN = FILTERED.replace('n.startswith("head")]', 'n.startswith("head") and p.requires_grad]')


@pytest.mark.parametrize(
    ("groups", "schedule", "is_asserted"),
    [
        (FROZEN, "LambdaLR(optimizer, lambda epoch: 0.9**epoch)", True),
        (FILTERED, "LambdaLR(optimizer, lambda epoch: 0.9**epoch)", False),
        (FILTERED, "LambdaLR(optimizer, lr_lambda=[lambda e: 0.9**e, lambda e: 1.0])", True),
    ],
)
def test_schedules_count_where_a_part_may_be_frozen(groups: str, schedule: str, *, is_asserted: bool) -> None:
    made = f"{groups}scheduler = torch.optim.lr_scheduler.{schedule}\n"
    migrated = convert(optimizer=made, loop=LOOP.replace("LINE", "pass"))
    assert (ASSERTED in migrated.code) == is_asserted
