"""ZeroRedundancyOptimizer becomes the optimizer it shards, whatever form the call has."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, check_refused, convert, script
from tests.codemod.steps.redundancy_scripts import IMPORTS


def check_optimizer(before: str, after: str, *, to: dict[str, Any] | None = None, **parts: str) -> Migrated:
    """Check what the lines that make the optimizer become; the engine comes right behind them."""
    parts.setdefault("imports", IMPORTS)
    migrated = convert(to=to, optimizer=before, **parts)
    made, _, _ = migrated.section("optimizer").partition("with open(")
    assert made == dedent(after).lstrip("\n"), migrated.told()
    return migrated


def refused(optimizer: str, line: str, message: str, **parts: str) -> None:
    parts.setdefault("imports", IMPORTS)
    check_refused(script(optimizer=optimizer, **parts), "MG903", line, message)


# -- what is something else ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("overlap_with_ddp=True", "overlap_with_ddp"),
        ("overlap_with_ddp=args.amp", "overlap_with_ddp"),
        ("process_group=dist.new_group([0, 1])", "process group of its own"),
        ("process_group=args.group", "process group of its own"),
    ],
)
def test_what_shards_or_steps_otherwise_is_refused(argument: str, message: str) -> None:
    line = f"optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, {argument}, lr=args.lr)"
    refused(line, line, message)


@pytest.mark.parametrize(
    "arguments",
    ["*given", "**vars(args)", "model.parameters(), **options", "model.parameters(), lr=args.lr"],
)
def test_a_class_that_is_not_seen_is_refused(arguments: str) -> None:
    refused(f"optimizer = ZeroRedundancyOptimizer({arguments})", "optimizer = ", "ZeroRedundancyOptimizer")


def test_a_functional_optimizer_is_refused() -> None:
    line = "optimizer = ZeroRedundancyOptimizer(model.parameters(), _FunctionalAdamW, lr=args.lr)"
    refused(line, line, "_FunctionalAdamW")


def test_a_subclass_is_refused() -> None:
    refused(
        "optimizer = Sharded(model.parameters(), torch.optim.AdamW, lr=args.lr)",
        "class Sharded(ZeroRedundancyOptimizer):",
        "subclass",
        helpers="""
            class Sharded(ZeroRedundancyOptimizer):
                pass
            """,
    )


def test_the_class_as_a_value_is_refused() -> None:
    refused(
        """
        make = ZeroRedundancyOptimizer if args.amp else torch.optim.AdamW
        optimizer = make(model.parameters(), lr=args.lr)
        """,
        "make = ZeroRedundancyOptimizer",
        "used as a value",
    )


def test_positional_arguments_of_a_partial_are_refused() -> None:
    refused(
        """
        make = partial(ZeroRedundancyOptimizer, model.parameters(), torch.optim.AdamW)
        optimizer = make(lr=args.lr)
        """,
        "make = partial(",
        "functools.partial",
    )


def test_an_annotation_and_an_import_are_no_use_of_it() -> None:
    migrated = convert(
        imports=IMPORTS,
        helpers="""
            def rate(optimizer: ZeroRedundancyOptimizer) -> float:
                return optimizer.param_groups[0]["lr"]
            """,
    )
    migrated.silent("MG610")
    assert migrated.config["zero_optimization"]["stage"] == 2


# -- what is converted ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("from torch.distributed.optim import ZeroRedundancyOptimizer", "ZeroRedundancyOptimizer"),
        ("from torch.distributed.optim import ZeroRedundancyOptimizer as ZeRO", "ZeRO"),
        ("from torch.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer as Z", "Z"),
        ("import torch.distributed.optim", "torch.distributed.optim.ZeroRedundancyOptimizer"),
        ("from torch.distributed import optim as sharding", "sharding.ZeroRedundancyOptimizer"),
        ("", "dist.optim.ZeroRedundancyOptimizer"),
    ],
)
def test_every_spelling_of_the_class_is_known(imports: str, name: str) -> None:
    migrated = check_optimizer(
        f"optimizer = {name}(model.parameters(), optimizer_class=torch.optim.AdamW, lr=args.lr)",
        "optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)\n",
        imports=imports,
    )
    migrated.said("MG610", "optimizer = ", Kind.CONVERTED)
    assert "ZeroRedundancyOptimizer" not in migrated.code
    assert migrated.config["zero_optimization"] == {"stage": 1}


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        (
            "model.parameters(), torch.optim.AdamW, None, True, lr=args.lr",
            "torch.optim.AdamW(model.parameters(), lr=args.lr)",
        ),
        (
            "model.parameters(), torch.optim.AdamW, dist.group.WORLD, lr=args.lr",
            "torch.optim.AdamW(model.parameters(), lr=args.lr)",
        ),
        (
            "params=model.parameters(), lr=args.lr, optimizer_class=torch.optim.AdamW",
            "torch.optim.AdamW(params=model.parameters(), lr=args.lr)",
        ),
        (
            "model.parameters(), optimizer_class=torch.optim.AdamW, overlap_with_ddp=False",
            "torch.optim.AdamW(model.parameters())",
        ),
        (
            "model.parameters(), torch.optim.Adam if args.amp else torch.optim.SGD, lr=args.lr",
            "(torch.optim.Adam if args.amp else torch.optim.SGD)(model.parameters(), lr=args.lr)",
        ),
        (
            "model.parameters(), partial(torch.optim.AdamW, eps=1e-6), lr=args.lr",
            "partial(torch.optim.AdamW, eps=1e-6)(model.parameters(), lr=args.lr)",
        ),
    ],
)  # fmt: skip
def test_its_own_arguments_go_and_the_others_stay(arguments: str, after: str) -> None:
    migrated = check_optimizer(f"optimizer = ZeroRedundancyOptimizer({arguments})", f"optimizer = {after}\n")
    migrated.silent("MG602", "MG603")


def test_a_class_that_is_chosen_by_name_is_spoken_of() -> None:
    migrated = check_optimizer(
        "optimizer = ZeroRedundancyOptimizer(model.parameters(), getattr(torch.optim, args.output), lr=args.lr)",
        "optimizer = getattr(torch.optim, args.output)(model.parameters(), lr=args.lr)\n",
    )
    assert "may be Adafactor or Muon" in migrated.said("MG603", "getattr(torch.optim").message


def test_the_layout_of_a_long_call_stays() -> None:
    check_optimizer(
        """
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(),
            optimizer_class=torch.optim.AdamW,
            lr=args.lr,  # the peak
            weight_decay=0.1,
            parameters_as_bucket_view=True,
        )
        """,
        """
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=args.lr,  # the peak
            weight_decay=0.1,
        )
        """,
    )


def test_a_partial_of_it_becomes_a_partial_of_the_class() -> None:
    migrated = check_optimizer(
        """
        make = partial(ZeroRedundancyOptimizer, optimizer_class=torch.optim.SGD, momentum=0.9, overlap_with_ddp=False)
        optimizer = make(model.parameters(), lr=args.lr)
        """,
        """
        make = partial(torch.optim.SGD, momentum=0.9)
        optimizer = make(model.parameters(), lr=args.lr)
        """,
    )
    migrated.said("MG601", "optimizer = make(")
    migrated.silent("MG603")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dict(lr=args.lr, betas=(0.9, 0.95))", "dict(lr=args.lr, betas=(0.9, 0.95))"),
        ('{"lr": args.lr, "parameters_as_bucket_view": True}', '{"lr": args.lr}'),
        ('{"process_group": None, "lr": args.lr}', '{"lr": args.lr}'),
    ],
)
def test_arguments_in_a_dictionary_are_sorted_out(before: str, after: str) -> None:
    migrated = check_optimizer(
        f"options = {before}\n"
        "optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, **options)\n",
        f"options = {after}\noptimizer = torch.optim.AdamW(model.parameters(), **options)\n",
    )
    assert "zero_allow_untested_optimizer" not in migrated.config


def test_the_class_may_stand_in_the_dictionary() -> None:
    migrated = check_optimizer(
        """
        options = {"optimizer_class": torch.optim.SGD, "lr": args.lr}
        optimizer = ZeroRedundancyOptimizer(model.parameters(), **options)
        """,
        """
        options = {"lr": args.lr}
        optimizer = torch.optim.SGD(model.parameters(), **options)
        """,
    )
    migrated.silent("MG603")
    migrated.said("MG601", "optimizer = Zero")


def test_a_group_in_a_dictionary_is_refused() -> None:
    refused(
        """
        options = {"process_group": dist.new_group([0, 1]), "lr": args.lr}
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, **options)
        """,
        "optimizer = Zero",
        "process group of its own",
    )


def test_a_dictionary_that_is_not_seen_is_left_to_the_person() -> None:
    migrated = convert(
        imports=IMPORTS,
        optimizer="optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **read_options())",
    )
    migrated.said("MG610", "optimizer = ", Kind.TODO)
    assert "optimizer = torch.optim.AdamW(model.parameters(), **read_options())" in migrated.code


@pytest.mark.parametrize(
    ("given", "todo"), [("lr=args.lr", False), ("overlap_with_ddp=True", True), ("**vars(args)", True)]
)
def test_keywords_of_a_factory_are_looked_for_at_its_calls(given: str, *, todo: bool) -> None:
    migrated = convert(
        imports=IMPORTS,
        helpers="""
            def build(params, cls, **options):
                return ZeroRedundancyOptimizer(params, optimizer_class=cls, **options)
            """,
        optimizer=f"optimizer = build(model.parameters(), torch.optim.AdamW, {given})",
    )
    assert "return cls(params, **options)" in migrated.code
    assert bool([c for c in migrated.changes if c.code == "MG610" and c.kind is Kind.TODO]) is todo


def test_two_branches_that_become_equal_are_one() -> None:
    check_optimizer(
        """
        if args.amp:
            optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=args.lr)
        else:
            optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        """,
        "optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)\n",
    )
