"""Tests that hang on what a rank has measured are not the same on all ranks, whatever their variables are called."""

from __future__ import annotations

import pytest

from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import STATE, saving

COLLECTIVE = "save_requested_checkpoints(model)\n"
HELPERS = """
class Meter:
    def __init__(self):
        self.total, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value):
        self.total += value
        self.count += 1
        self.avg = self.total / self.count


def validate(model, loader):
    meter = Meter()
    with torch.no_grad():
        for x, y in loader:
            meter.update(F.cross_entropy(model(x), y).item())
    return meter.avg


class Watch:
    def __init__(self):
        self.value, self.limit, self.reached = 1e9, 1e9, False

    def look(self, value):
        self.value = value
        if value < self.limit:
            self.reached = True


"""


def trained(body: str, start: str = "limit = 1e9") -> Migrated:
    return convert(loop=f"{start}\n{saving(body).lstrip()}", helpers=HELPERS)


def kept(test: str, before: str = "", start: str = "limit = 1e9") -> str:
    return trained(f"{before}\nif {test}:\n    torch.save({STATE}, 'best.pt')", start).section("loop")


@pytest.mark.parametrize(
    ("test", "before", "start"),
    [
        ("epoch_loss < last_loss", "epoch_loss = loss.item()", "last_loss = 1e9"),
        ("epoch_value < last_value", "epoch_value = validate(model, train_loader)", "last_value = 1e9"),
        ("last_value < max_value", "last_value = loss.item()", "max_value = 0"),
        ("total_num / 10 > max_num", "total_num += loss.item()", "max_num = total_num = 0"),
        ("num_right > max_num", "num_right = (model(x) == y).sum()", "max_num = 0"),
        ("watch.value < watch.limit", "watch.value = validate(model, train_loader)", "watch = Watch()"),
        ("watch.reached", "watch.look(validate(model, train_loader))", "watch = Watch()"),
        ("counter == 0", "if loss.item() < 3:\n    counter = 0\nelse:\n    counter += 1", "counter = 1"),
        ("args.best_acc < epoch", "", "args.best_acc = 0"),
    ],
)
def test_all_ranks_write_behind_a_test_of_what_each_measured(test: str, before: str, start: str) -> None:
    assert kept(test, before, start).endswith(f"'best.pt')\n    {COLLECTIVE}")


@pytest.mark.parametrize(
    ("test", "before", "start"),
    [
        ("epoch % args.save_every == 0", "", ""),
        ("step % 10 == 0", "if (epoch + 1) % 2 == 0:\n    step += 1", "step = 0"),
        ("epoch == last_epoch", "", "last_epoch = args.epochs - 1"),
        ("num_steps > 5", "num_steps += len(train_loader)", "num_steps = 0"),
        ("args.max_steps < epoch and args.accum_iter", "", ""),
    ],
)
def test_counters_and_options_are_the_same_on_all(test: str, before: str, start: str) -> None:
    assert kept(test, before, start).endswith(f"'best.pt')\n        {COLLECTIVE}")


def test_a_loop_over_files_under_such_a_test_is_no_training() -> None:
    body = f"if loss.item() < limit:\n    for name in names:\n        torch.save({STATE}, name)"
    section = trained(body, "names, limit = args.names, 1e9").section("loop")
    assert section.endswith(f", name)\n    {COLLECTIVE}")
