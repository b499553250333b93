"""Optimizers whose class is chosen when the script runs: the worst of those that may be meant decides."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

HELPERS = """
    class Scaled(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad / p.grad.norm(), alpha=-group["lr"])

    class Renamed(Scaled):
        pass

    class OfTimm(Lamb):
        pass

    TABLE = {"sgd": torch.optim.SGD, "scaled": Scaled}
    class OfAdagrad(torch.optim.Adagrad):
        pass

    PLAIN = dict(sgd=torch.optim.SGD, adam=torch.optim.Adam)
    FILLED = {}
    FILLED["scaled"] = Scaled

    def chosen(name):
        if name == "scaled":
            return Scaled
        return torch.optim.SGD
    """
IMPORTS = """
    import sys
    from functools import partial
    from timm.optim import Lamb
    """


def _made_by(expression: str, options: str = "") -> Migrated:
    text = f"optimizer = {expression}(model.parameters())"
    return convert(imports=IMPORTS, helpers=HELPERS, optimizer=text, options=options)


@pytest.mark.parametrize(
    "expression",
    [
        "Renamed",
        "OfTimm",
        '{"sgd": torch.optim.SGD, "scaled": Scaled}[args.output]',
        "TABLE[args.output]",
        "TABLE.get(args.output, torch.optim.SGD)",
        "PLAIN.get(args.output, Scaled)",
        "{**PLAIN, **TABLE}[args.output]",
        "FILLED[args.output]",
        "[torch.optim.SGD, Scaled][args.epochs]",
        '(Scaled if args.output == "scaled" else torch.optim.SGD)',
        "chosen(args.output)",
        "globals()[args.output]",
        "eval(args.output)",
        "getattr(sys.modules[__name__], args.output)",
        '{"scaled": lambda params: Scaled(params, lr=0.1), "sgd": torch.optim.SGD}[args.output]',
        '{"scaled": partial(Scaled, lr=0.1), "sgd": torch.optim.SGD}[args.output]',
        '{"sgd": torch.optim.SGD, "factored": torch.optim.Adafactor}[args.output]',
        '{"sgd": torch.optim.SGD, "muon": torch.optim.Muon}[args.output]',
        'getattr(torch.optim, "Adafactor")',
        "torch.optim.Adagrad",
        "OfAdagrad",
        'getattr(torch.optim, "Adagrad")',
        '{"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[args.output]',
    ],
)
def test_a_class_that_may_be_layerwise_gets_stage_zero(expression: str) -> None:
    migrated = _made_by(expression)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG602", "optimizer = ", Kind.KEPT)
    migrated.silent("MG603")


@pytest.mark.parametrize(
    "expression",
    [
        "PLAIN[args.output]",
        'TABLE["sgd"]',
        '{"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[args.output]',
        "(torch.optim.SGD if args.amp else torch.optim.AdamW)",
        'getattr(torch.optim, "SGD")',
    ],
)
def test_classes_that_are_elementwise_one_and_all_keep_the_stage(expression: str) -> None:
    migrated = _made_by(expression)
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG602", "MG603")


def test_a_class_bound_before_is_followed_to_where_it_comes_from() -> None:
    before = 'cls = Scaled if args.output == "scaled" else torch.optim.SGD\n'
    migrated = convert(
        imports=IMPORTS, helpers=HELPERS, optimizer=before + "optimizer = cls(model.parameters(), lr=0.1)"
    )
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_any_class_of_torch_may_be_one_that_looks_at_layers() -> None:
    migrated = _made_by("getattr(torch.optim, args.output)")
    assert migrated.config["zero_optimization"] == {"stage": 2}
    assert "may be Adafactor or Muon" in migrated.said("MG603", "optimizer = ", Kind.KEPT).message


def test_the_choices_of_an_option_are_all_that_may_be_meant() -> None:
    option = 'parser.add_argument("--opt", default="SGD", choices=["SGD", "{other}"])'
    plain = _made_by("getattr(torch.optim, args.opt)", option.format(other="AdamW"))
    plain.silent("MG602", "MG603")
    layerwise = _made_by("getattr(torch.optim, args.opt)", option.format(other="Adafactor"))
    assert layerwise.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize("expression", ["getattr(factory, args.output)", "factory.TABLE[args.output]"])
def test_a_class_that_is_not_seen_is_named(expression: str) -> None:
    migrated = convert(imports="import factory", optimizer=f"optimizer = {expression}(model.parameters())")
    assert expression in migrated.said("MG603", "optimizer = ", Kind.KEPT).message


PATCH = """
    def patched(optimizer):
        step = optimizer.step

        def counted(*given):
            return step(*given)

        optimizer.step = counted
        return optimizer
    """


def test_an_optimizer_that_is_known_by_its_use_alone_is_made_before_the_engine() -> None:
    migrated = convert(helpers=PATCH, optimizer="optimizer = patched(torch.optim.SGD(model.parameters(), lr=0.1))")
    code = migrated.code
    assert code.index("optimizer = patched(") < code.index("deepspeed.initialize(")


def test_the_classes_behind_an_optimizer_that_is_known_by_its_use_are_looked_at() -> None:
    build = 'def build(model, name):\n        return {"scaled": Scaled}[name](model.parameters())\n'
    migrated = convert(imports=IMPORTS, helpers=HELPERS + build, optimizer="optimizer = build(model, args.output)")
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert [c for c in migrated.changes if c.code == "MG602"]


def test_adagrad_is_marked_where_a_stage_is_asked_for() -> None:
    migrated = convert(optimizer="optimizer = torch.optim.Adagrad(model.parameters())", to={"zero_stage": 2})
    assert "another Adagrad" in migrated.said("MG602", "optimizer = ", Kind.TODO).reason
