"""Steps that each rank takes or leaves out by its own loss."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert


def stepping(*lines: str) -> Migrated:
    body = "".join(f"    {line}\n" for line in lines)
    start = "last = 9.0\nfor x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n"
    return convert(loop=f"{start}    optimizer.zero_grad()\n{body}")


@pytest.mark.parametrize(
    "lines",
    [
        ("loss.backward()", "if not torch.isnan(loss):", "    optimizer.step()"),
        ("loss.backward()", "if torch.isfinite(loss).all():", "    optimizer.step()"),
        ("value = loss.item()", "loss.backward()", "if not math.isnan(value) and value < 9:", "    optimizer.step()"),
        ("loss.backward()", "if loss.item() > 2 * last:", "    continue", "optimizer.step()", "last = loss.item()"),
    ],
)
def test_a_step_that_each_rank_decides_about_is_marked(lines: tuple[str, ...]) -> None:
    migrated = stepping(*lines)
    migrated.said("MG428", next(line for line in lines if line.startswith("if ")), Kind.TODO)


@pytest.mark.parametrize(
    "lines",
    [
        ("loss.backward()", "dist.all_reduce(loss)", "if not torch.isnan(loss):", "    optimizer.step()"),
        ("loss.backward()", "value = reduce_mean(loss)", "if value < 9:", "    optimizer.step()"),
        ("loss.backward()", "if loss is not None:", "    optimizer.step()"),
        ("loss.backward()", "if not math.isfinite(loss.item()):", "    sys.exit(1)", "optimizer.step()"),
        ("loss.backward()", "if args.train:", "    optimizer.step()"),
        ("if loss.item() < 9:", "    loss.backward()", "    optimizer.step()"),
        ("loss.backward()", "optimizer.step()", "if loss.item() < last:", "    last = loss.item()"),
    ],
)
def test_a_step_that_all_ranks_take_together_is_left_alone(lines: tuple[str, ...]) -> None:
    stepping(*lines).silent("MG428")
