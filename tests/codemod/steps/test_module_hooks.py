"""Weights that a hook of a module writes at every forward or backward, wherever the hook was registered."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, migrate

SCRIPT = """
from functools import partial

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

seen = []


{functions}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 4)
        {own}

    def forward(self, x):
        return self.head(self.body(x))

    def _limit(self, module, inputs):
        {method}


dist.init_process_group("nccl")
net = Net().cuda()
{before}
model = DDP(net)
{after}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in load():
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LIMIT = """
def limit(module, inputs):
    with torch.no_grad():
        module.weight.clamp_(-1, 1)
"""
WRITE = "module.weight.clamp_(-1, 1)"


def converted(
    functions: str = "", own: str = "pass", method: str = "pass", before: str = "", after: str = ""
) -> Migrated:
    parts = {"functions": functions.strip(), "own": own, "method": method, "before": before, "after": after}
    text = SCRIPT
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return migrate(text)


@pytest.mark.parametrize(
    "before",
    [
        "net.head.register_forward_pre_hook(limit)",
        "net.head.register_forward_hook(limit)",
        "net.head.register_full_backward_hook(hook=limit)",
        "net.register_forward_pre_hook(limit)",
        "for part in net.children(): handle = part.register_forward_hook(limit)",
        "for part in net.modules():\n    if hasattr(part, 'weight'): part.register_forward_pre_hook(limit)",
        "for name, part in net.named_modules(): part.register_forward_pre_hook(limit)",
        "head = net.head\nhead.register_forward_pre_hook(limit)",
        "nn.modules.module.register_module_forward_pre_hook(limit)",
        "limit(net.head, None)\nnet.head.register_forward_pre_hook(limit)",
    ],
)
def test_a_hook_that_writes_weights_needs_stage_zero(before: str) -> None:
    migrated = converted(LIMIT, before=before)
    migrated.said("MG509", WRITE, Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0


@pytest.mark.parametrize(
    "line",
    [
        "module.weight.data = module.weight.data.clamp(-1, 1)",
        "module.weight.data *= 0.9",
        "module.weight.data[0] = 0.0",
        "nn.init.zeros_(module.bias)",
        "for p in module.parameters(): p.data.clamp_(-1, 1)",
        "shrink(module)",
    ],
)
def test_every_form_of_a_write_counts_within_a_hook(line: str) -> None:
    shrink = "\n\ndef shrink(part):\n    part.weight.data.mul_(0.9)\n"
    hook = f"{LIMIT.replace(WRITE, line)}{shrink if 'shrink' in line else ''}"
    migrated = converted(hook, before="net.head.register_forward_pre_hook(limit)")
    migrated.said("MG509", "part.weight.data.mul_" if "shrink" in line else line.rpartition(": ")[2], Kind.KEPT)


@pytest.mark.parametrize(
    ("functions", "hook"),
    [
        ("def make(high):\n    def limit(part, inputs):\n        {}\n    return limit\n\n\n", "make(1)"),
        ("def limit(high, part, inputs):\n    {}\n\n\n", "partial(limit, 1)"),
        ("class Limit:\n    def __call__(self, part, inputs):\n        {}\n\n\n", "Limit()"),
    ],
)
def test_hooks_that_are_made_bound_or_objects_count_too(functions: str, hook: str) -> None:
    write = "part.weight.data.clamp_(-1, 1)"
    after = f"model.module.head.register_forward_pre_hook({hook})"
    converted(functions.format(write), after=after).said("MG509", write, Kind.KEPT)


def test_a_lambda_that_writes_is_marked_where_it_is_registered() -> None:
    line = "net.head.register_forward_pre_hook(lambda part, inputs: part.weight.data.clamp_(-1, 1))"
    converted(before=line).said("MG509", line, Kind.KEPT)


@pytest.mark.parametrize(
    "own",
    [
        "self.head.register_forward_pre_hook(limit)",
        "self.register_forward_pre_hook(limit)",
        "for part in self.modules(): part.register_forward_pre_hook(limit)",
    ],
)
def test_a_module_that_hooks_its_own_parts_counts_too(own: str) -> None:
    converted(LIMIT, own=own).said("MG509", WRITE, Kind.KEPT)


def test_a_method_that_is_a_hook_counts_too() -> None:
    own = "self.head.register_forward_pre_hook(self._limit)"
    converted(own=own, method=WRITE).said("MG509", WRITE, Kind.KEPT)


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("seen.append(module.weight.norm())", "net.head.register_forward_hook(limit)"),
        ("seen.append(inputs[0].data)", "net.head.register_forward_hook(limit)"),
        ("module.running_mean.zero_()", "net.head.register_forward_hook(limit)"),
        (WRITE, "other = nn.Linear(2, 2)\nother.register_forward_pre_hook(limit)"),
        (WRITE, "limit(net.head, None)"),
    ],
)
def test_hooks_that_read_hooks_of_other_models_and_mere_calls_need_nothing(line: str, before: str) -> None:
    converted(LIMIT.replace(WRITE, line), before=before).silent("MG509")
