"""A turn of the loop that ends between backward and step leaves gradients, which the next zero_grad has to drop."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert


def passing(leave: str, *, first: str = "optimizer.zero_grad()", last: str = "") -> Migrated:
    lines = [
        first,
        "loss = F.cross_entropy(model(x.cuda()), y.cuda())",
        "loss.backward()",
        leave,
        "optimizer.step()",
        last,
    ]
    body = "".join(f"    {line}\n" for text in lines for line in text.splitlines())
    return convert(loop=f"for x, y in train_loader:\n{body}")


@pytest.mark.parametrize(
    "leave",
    [
        "if not torch.isfinite(loss):\n    continue",
        "if args.amp and loss > 9:\n    print(loss)\n    break",
        "if loss > 9:\n    return args",
        "try:\n    check(loss)\nexcept ValueError:\n    continue",
    ],
)
def test_a_zero_grad_in_front_of_a_step_that_is_passed_drops_gradients(leave: str) -> None:
    migrated = passing(leave)
    assert migrated.section("loop").startswith("for x, y in train_loader:\n    drop_gradients(model)\n")
    migrated.said("MG408", "optimizer.zero_grad()", Kind.CONVERTED)


def test_a_zero_grad_behind_the_step_goes_as_it_was_passed_too() -> None:
    migrated = passing("if loss > 9:\n    continue", first="", last="optimizer.zero_grad()")
    migrated.said("MG403", "optimizer.zero_grad()", Kind.CONVERTED)


def test_a_loop_of_its_own_between_backward_and_step_passes_nothing() -> None:
    migrated = passing("for name in args.output:\n    if name:\n        break")
    migrated.said("MG403", "optimizer.zero_grad()", Kind.CONVERTED)
    assert "drop_gradients" not in migrated.code
