"""ZeroRedundancyOptimizer becomes the optimizer it shards."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

CALL = "ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.1)"
SCRIPT = (
    HEAD
    + """
import argparse
from functools import partial
from torch.distributed.optim import ZeroRedundancyOptimizer
from lab import read_options

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
{helpers}
dist.init_process_group("nccl")
model = DDP(nn.Linear(3, 3).cuda())
{before}
optimizer = {made}
for x in range(5):
    loss = model(torch.ones(3, 3).cuda()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{end}
"""
)


def trained(made: str = CALL, *, before: str = "", end: str = "", helpers: str = "", **options: object) -> Converted:
    return converted(SCRIPT.format(made=made, before=before, end=end, helpers=helpers), **options)


@pytest.mark.parametrize(
    ("made", "message", "before", "helpers"),
    [
        (
            "ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)",
            "overlap_with_ddp",
            "",
            "",
        ),
        (
            "ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=args.amp, lr=0.1)",
            "overlap_with_ddp",
            "",
            "",
        ),
        (
            "ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, dist.new_group([0, 1]), lr=0.1)",
            "process group of its own",
            "",
            "",
        ),
        (
            "ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, process_group=args.group)",
            "process group of its own",
            "",
            "",
        ),
        ("ZeroRedundancyOptimizer(model.parameters(), lr=0.1)", "optimizer_class", "", ""),
        ("ZeroRedundancyOptimizer(model.parameters(), **vars(args))", "optimizer_class", "", ""),
        (
            "make(model.parameters(), lr=0.1)",
            "another name",
            "make = partial(ZeroRedundancyOptimizer, optimizer_class=torch.optim.SGD)",
            "",
        ),
        (
            "Sharded(model.parameters(), torch.optim.SGD, lr=0.1)",
            "subclass",
            "",
            "class Sharded(ZeroRedundancyOptimizer):\n    pass",
        ),
    ],
)
def test_what_shards_or_steps_otherwise_is_refused(made: str, message: str, before: str, helpers: str) -> None:
    found = trained(made, before=before, helpers=helpers)
    assert found.status is Status.REFUSED
    assert message in found.said("MG903").message


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        ("model.parameters(), torch.optim.AdamW, None, True, lr=0.1", "torch.optim.AdamW(model.parameters(), lr=0.1)"),
        (
            "model.parameters(), torch.optim.AdamW, dist.group.WORLD, lr=0.1",
            "torch.optim.AdamW(model.parameters(), lr=0.1)",
        ),
        (
            "params=model.parameters(), lr=0.1, optimizer_class=torch.optim.AdamW",
            "torch.optim.AdamW(params=model.parameters(), lr=0.1)",
        ),
        (
            "model.parameters(), optimizer_class=torch.optim.SGD, overlap_with_ddp=False",
            "torch.optim.SGD(model.parameters())",
        ),
        (
            "model.parameters(), torch.optim.Adam if args.amp else torch.optim.SGD, lr=0.1",
            "(torch.optim.Adam if args.amp else torch.optim.SGD)(model.parameters(), lr=0.1)",
        ),
    ],
)
def test_its_own_arguments_go_and_the_others_stay(arguments: str, after: str) -> None:
    found = trained(f"ZeroRedundancyOptimizer({arguments})")
    assert f"optimizer = {after}\n" in found.text
    assert "ZeroRedundancyOptimizer" not in found.text
    assert not found.todos


def test_arguments_in_a_dictionary() -> None:
    made = "ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, **options)"
    assert not trained(made, before="options = dict(lr=0.1, momentum=0.9)").todos
    for options in ('{"lr": 0.1, "parameters_as_bucket_view": True}', "read_options()"):
        found = trained(made, before=f"options = {options}")
        assert "out of options" in found.said("MG610", Kind.TODO).message


@pytest.mark.parametrize(
    "end",
    [
        "optimizer.consolidate_state_dict(to=0)",
        "if isinstance(optimizer, ZeroRedundancyOptimizer):\n    optimizer.consolidate_state_dict(to=0)",
        'if hasattr(optimizer, "consolidate_state_dict"):\n    optimizer.consolidate_state_dict()',
    ],
)
def test_consolidation_goes_with_its_guard(end: str) -> None:
    found = trained(end=f'{end}\nif dist.get_rank() == 0:\n    torch.save(optimizer.state_dict(), "a.pt")')
    assert "consolidate" not in found.text
    assert "ZeroRedundancyOptimizer" not in found.text
    assert "ds_compat.gather_checkpoint(model)\nif dist.get_rank() == 0:" in found.text
    assert not found.todos


def test_a_guard_that_does_more_than_to_ask_is_worked_out_all_the_same() -> None:
    found = trained(
        before="def found(one, kind):\n    print(one)\n    return isinstance(one, kind)",
        end="if found(optimizer, ZeroRedundancyOptimizer):\n    optimizer.consolidate_state_dict(to=0)",
    )
    assert "\nfound(optimizer, ZeroRedundancyOptimizer)" in found.text
    assert not found.todos


def test_what_else_stands_in_the_guard_is_marked() -> None:
    found = trained(
        end=(
            "if isinstance(optimizer, ZeroRedundancyOptimizer):\n"
            "    optimizer.consolidate_state_dict(to=0)\n    print(1)"
        )
    )
    assert "fails now" in found.said("MG610", Kind.TODO).message


def test_stage_zero_shards_nothing() -> None:
    assert "whole optimizer state" in trained(zero_stage=0).said("MG610", Kind.KEPT).message
    assert Kind.KEPT not in {change.kind for change in trained(zero_stage=1).changes if change.code == "MG610"}


def test_without_it_consolidation_is_nothing_to_us() -> None:
    end = 'if hasattr(optimizer, "consolidate_state_dict"):\n    optimizer.consolidate_state_dict()'
    found = trained("torch.optim.SGD(model.parameters(), lr=0.1)", end=end)
    assert "optimizer.consolidate_state_dict()" in found.text


@pytest.mark.parametrize("given", ["torch.optim.AdamW", "optimizer_class=torch.optim.AdamW"])
def test_how_it_updates_is_what_the_class_does_that_it_is_given(given: str) -> None:
    found = trained(f"ZeroRedundancyOptimizer(model.parameters(), {given}, lr=0.1)")
    assert not {"MG602", "MG603"} & {change.code for change in found.changes}
