"""What ``loss.backward`` is given, in every spelling, reaches the engine or refuses the script."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_refused, convert, script
from tests.codemod.steps.loop_scripts import loop


def _loop(backward: str) -> str:
    return loop("optimizer.zero_grad()", backward, "optimizer.step()")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss.backward(torch.tensor(0.5))", "model.backward((loss * torch.tensor(0.5)).sum())"),
        ("loss.backward(torch.ones_like(loss))", "model.backward((loss * torch.ones_like(loss)).sum())"),
        ("loss.backward(gradient=torch.ones(2).to(rank))", "model.backward((loss * torch.ones(2).to(rank)).sum())"),
        ("(loss + 1).backward(torch.ones([]))", "model.backward(((loss + 1) * torch.ones([])).sum())"),
        ("loss.backward(half)", "model.backward((loss * half).sum())"),
        ("loss.backward(minus)", "model.backward((loss * minus).sum())"),
        ("loss.backward(-half)", "model.backward((loss * (-half)).sum())"),
        ("loss.backward(None)", "model.backward(loss)"),
        ("loss.backward(None, True)", "model.backward(loss, retain_graph=True)"),
        ("loss.backward(None, False, False)", "model.backward(loss)"),
        ("loss.backward(**extra)", "model.backward(loss, **extra)"),
    ],
)
def test_a_gradient_and_a_graph_that_is_kept_are_carried(before: str, after: str) -> None:
    migrated = convert(
        loop="half = torch.tensor(0.5)\nhalf = half.to(rank)\nminus = half * -1\nextra = {}\n" + _loop(before)
    )
    assert after in migrated.section("loop")
    migrated.said("MG401", before, Kind.CONVERTED)


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        ("loss.backward(args.start)", "not known to be a tensor"),
        ("loss.backward(gradient=args.start)", "not known to be a tensor"),
        ("loss.backward(*args.start)", "not seen"),
        ("loss.backward(None, None, False, list(model.parameters()))", "inputs"),
        ("loss.backward(inputs=list(model.parameters()))", "inputs"),
        ("loss.backward(None, None, True)", "graph of grad"),
    ],
)
def test_what_the_engine_cannot_be_given_is_refused(backward: str, message: str) -> None:
    check_refused(script(loop=_loop(backward)), "MG905", backward, message)


def test_a_flag_by_position_is_asserted() -> None:
    migrated = convert(loop=_loop("loss.backward(None, False, args.epochs > 3)"))
    assert "assert not (args.epochs > 3)" in migrated.section("loop")


def test_a_method_called_backward_is_the_scripts_own() -> None:
    trainer = """
        class Trainer:
            def __init__(self, model, optimizer):
                self.model, self.optimizer = model, optimizer

            def backward(self, loss, weight):
                (weight * loss).backward()

            def update(self, x, y):
                self.optimizer.zero_grad()
                self.backward(F.cross_entropy(self.model(x), y), 0.5)
                self.optimizer.step()
        """
    migrated = convert(
        helpers=trainer,
        optimizer="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ntrainer = Trainer(model, optimizer)",
        loop="for x, y in train_loader:\n    trainer.update(x, y)",
    )
    assert "self.backward(F.cross_entropy(self.model(x), y), 0.5)" in migrated.code
    assert "self.model.backward(weight * loss)" in migrated.code
