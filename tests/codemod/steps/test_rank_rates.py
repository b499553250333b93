"""Learning rates that only some ranks change."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

LOOP = """
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for epoch in range(args.epochs):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """


def behind(text: str) -> str:
    return LOOP.rstrip(" ") + "".join(f"        {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        "scheduler.step()",
        'optimizer.param_groups[0]["lr"] = 0.1',
        'for group in optimizer.param_groups: group["lr"] *= 0.5',
        'for index, group in enumerate(optimizer.param_groups): group["lr"] = 0.1 * index',
    ],
)
def test_a_learning_rate_that_rank_0_changes_needs_stage_zero(line: str) -> None:
    text = line.replace(": ", ":\n        ") if line.startswith("for") else line
    migrated = convert(loop=behind(f"if rank == 0:\n    {text}"))
    migrated.said("MG613", line.rpartition(": ")[2], Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0
    assert convert(loop=behind(text.replace("\n    ", "\n"))).config["zero_optimization"]["stage"] == 2


def test_a_test_for_a_distributed_run_lets_all_ranks_in() -> None:
    convert(loop=behind("if rank != -1:\n    scheduler.step()")).silent("MG613")


def test_what_rank_0_only_reads_changes_nothing() -> None:
    convert(loop=behind('if rank == 0:\n    print(optimizer.param_groups[0]["lr"])')).silent("MG613")


HELPER = """
def decay(opt, epoch):
    for group in opt.param_groups:
        group["lr"] = 0.1 * 0.5**epoch
"""
GUARDED = HELPER.replace("    for group", "    if dist.get_rank() != 0:\n        return\n    for group")


@pytest.mark.parametrize(
    ("helpers", "text", "stage"),
    [
        (HELPER, "if rank == 0:\n    decay(optimizer, epoch)", 0),
        (GUARDED, "decay(optimizer, epoch)", 0),
        (HELPER, "decay(optimizer, epoch)", 2),
        (HELPER, "if rank != -1:\n    decay(optimizer, epoch)", 2),
    ],
)
def test_a_helper_that_only_some_ranks_call_changes_rates_alone(helpers: str, text: str, stage: int) -> None:
    migrated = convert(helpers=helpers, loop=behind(text))
    assert migrated.config["zero_optimization"]["stage"] == stage
    if stage == 0:
        migrated.said("MG613", 'group["lr"] = 0.1', Kind.KEPT)


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("scheduler.step(loss.item())", 0),
        ("mean = loss.item() / 2\nscheduler.step(mean)", 0),
        ("dist.all_reduce(loss)\nscheduler.step(loss.item())", 2),
        ("loss = reduce_tensor(loss)\nscheduler.step(loss)", 2),
        ("mean = mean_over_ranks_reduced(loss)\nscheduler.step(mean)", 2),
        ("scheduler.step(evaluate(model))", 2),
    ],
)
def test_a_schedule_by_the_loss_of_each_rank_needs_stage_zero(text: str, stage: int) -> None:
    migrated = convert(loop=behind(text).replace("StepLR(optimizer, 2)", "ReduceLROnPlateau(optimizer)"))
    assert migrated.config["zero_optimization"]["stage"] == stage
    if stage == 0:
        migrated.said("MG613", "scheduler.step(", Kind.KEPT)


def test_a_schedule_that_is_given_something_else_than_a_metric_is_no_schedule_by_the_loss() -> None:
    convert(loop=behind("scheduler.step(epoch)")).silent("MG613")


def test_a_rate_that_is_written_under_a_test_of_the_own_loss_needs_stage_zero() -> None:
    text = 'if loss.item() > last:\n    for group in optimizer.param_groups:\n        group["lr"] *= 0.5'
    text += "\nlast = loss.item()"
    migrated = convert(loop=behind(text).replace("    for epoch", "    last = 9.0\n    for epoch", 1))
    migrated.said("MG613", 'group["lr"] *= 0.5', Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0


METERS = """
class Meter:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, count=1):
        self.sum += value * count
        self.count += count
        self.avg = self.sum / self.count


class SharedMeter(Meter):
    def update(self, value, count=1):
        pair = torch.tensor([value * count, count])
        dist.all_reduce(pair)
        self.avg = (pair[0] / pair[1]).item()


def validate(model, loader):
    losses, right = Meter(), 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            losses.update(F.cross_entropy(out, y).item())
            right += (out.argmax(1) == y).sum().item()
    return losses.avg, right / len(loader)


"""
OF_ALL = """
def of_all(model, loader):
    total = torch.tensor(validate(model, loader)[0])
    dist.all_reduce(total)
    return total.item()


"""
WHOLE = "whole = torch.utils.data.DataLoader(train_loader.dataset, batch_size=8)"
PARTS = WHOLE.replace("whole =", "parts =").replace(
    "batch_size", "sampler=torch.utils.data.distributed.DistributedSampler(train_loader.dataset), batch_size"
)


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("meter = Meter()\nmeter.update(loss.item())\nscheduler.step(meter.avg)", 0),
        ("losses = []\nlosses.append(loss.item())\nscheduler.step(sum(losses) / len(losses))", 0),
        ("meter = SharedMeter()\nmeter.update(loss.item())\nscheduler.step(meter.avg)", 2),
        ("value, right = validate(model, parts)\nscheduler.step(value)", 0),
        ("value, right = validate(model, parts)\nscheduler.step(1 - right)", 0),
        ("value, right = validate(model, whole)\nscheduler.step(value)", 2),
        ("scheduler.step(of_all(model, parts))", 2),
        ("value = validate(model, parts)\nvalue = reduce_values(value)\nscheduler.step(value[0])", 2),
    ],
)
def test_metrics_of_meters_and_functions(text: str, stage: int) -> None:
    loop = behind(text).replace("StepLR(optimizer, 2)", "ReduceLROnPlateau(optimizer)")
    loader = WHOLE if "whole" in text else PARTS
    migrated = convert(helpers=METERS + (OF_ALL if "of_all" in text else ""), loop=f"\n    {loader}{loop}")
    assert migrated.config["zero_optimization"]["stage"] == stage
