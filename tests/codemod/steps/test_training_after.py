"""Weights that are loaded or cast: what counts is whether training follows, not how a function is named."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, migrate

HEAD = """
import copy
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def restore(model, path):
    model.module.load_state_dict(torch.load(path))

"""
TRAIN = "train_epoch(model, loader, optimizer)"
MAIN = """
def main(args, loader, val_loader):
    dist.init_process_group("nccl")
    model = DDP(nn.Linear(8, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOAD = "model.module.load_state_dict("


def converted(functions: str, main: str) -> Migrated:
    body = "".join(f"    {line}\n" for line in main.splitlines())
    return migrate(f"{HEAD}{functions}{MAIN}{body}\n\nmain(args, loader, val_loader)\n")


def test_a_name_that_only_holds_the_letters_of_test_is_no_evaluation() -> None:
    functions = f"\ndef load_latest(model, path):\n    {LOAD}torch.load(path, 'cpu'))\n\n"
    migrated = converted(functions, "load_latest(model, 'last.pt')\ntrain_epoch(model, loader, optimizer)")
    migrated.said("MG625", f"{LOAD}torch.load(path, 'cpu'))", Kind.TODO)


def test_a_function_whose_callees_train_is_no_evaluation() -> None:
    functions = f"""
def train_and_evaluate(model, loader, val_loader, optimizer):
    for epoch in range(6):
        weights = copy.deepcopy(model.module.state_dict())
        train_epoch(model, loader, optimizer)
        if is_worse(model, val_loader):
            {LOAD}weights)

"""
    migrated = converted(functions, "train_and_evaluate(model, loader, val_loader, optimizer)")
    migrated.said("MG625", f"{LOAD}weights)", Kind.TODO)


@pytest.mark.parametrize(
    "main",
    [
        "find_lr(model, loader, optimizer)\ntrain_epoch(model, loader, optimizer)",
        "for epoch in range(3):\n    train_epoch(model, loader, optimizer)\n    find_lr(model, loader, optimizer)",
        "try:\n    find_lr(model, loader, optimizer)\nfinally:\n    train_epoch(model, loader, optimizer)",
    ],
)
def test_training_behind_the_call_of_a_function_that_trains_is_seen(main: str) -> None:
    functions = f"""
def find_lr(model, loader, optimizer):
    weights = copy.deepcopy(model.module.state_dict())
    train_epoch(model, loader, optimizer)
    {LOAD}weights)

"""
    converted(functions, main).said("MG625", f"{LOAD}weights)", Kind.TODO)


@pytest.mark.parametrize(
    "main",
    [
        f"{TRAIN}\nrestore(model, 'best.pt')\nprint(measure(model))",
        f"if args.test:\n    restore(model, 'best.pt')\n    return\n{TRAIN}",
        f"if args.test:\n    restore(model, 'best.pt')\n    sys.exit()\n{TRAIN}",
        f"while True:\n    {TRAIN}\n    if args.done:\n        restore(model, 'best.pt')\n        break",
        f"try:\n    {TRAIN}\n    restore(model, 'best.pt')\nfinally:\n    print(1)",
    ],
)
def test_weights_for_an_evaluation_at_the_end_stay(main: str) -> None:
    converted("", main).said("MG625", f"{LOAD}torch.load(path))", Kind.KEPT)


def test_a_loader_that_is_called_before_training_too_is_marked() -> None:
    main = "restore(model, 'init.pt')\ntrain_epoch(model, loader, optimizer)\nrestore(model, 'best.pt')"
    converted("", main).said("MG625", f"{LOAD}torch.load(path))", Kind.TODO)


def test_a_model_that_is_cast_where_it_is_trained_is_told_of_whatever_the_name() -> None:
    source = HEAD + MAIN.replace("main(args", "train_and_validate(args").replace(
        "model = DDP(nn.Linear(8, 1).cuda())",
        "model = nn.Linear(8, 1).cuda()\n    model = model.bfloat16()\n    model = DDP(model)",
    )
    migrated = migrate(
        f"{source}    train_epoch(model, loader, optimizer)\n\n\ntrain_and_validate(args, loader, val_loader)\n"
    )
    migrated.said("MG305", "model = model.bfloat16()", Kind.TODO)
    assert migrated.config["bf16"]["enabled"] is True


@pytest.mark.parametrize("name", ["build_test_model", "load_latest"])
def test_a_model_that_is_cast_before_it_is_trained_is_told_of(name: str) -> None:
    functions = f"\ndef {name}(net):\n    net = net.half()\n    return net\n\n"
    main = MAIN.replace("DDP(nn.Linear(8, 1).cuda())", f"DDP({name}(nn.Linear(8, 1).cuda()))")
    migrated = migrate(
        f"{HEAD}{functions}{main}    train_epoch(model, loader, optimizer)\n\n\nmain(args, loader, val_loader)\n"
    )
    migrated.said("MG305", "net = net.half()", Kind.TODO)


SWAP = f"""
def measure(model, loader, averaged):
    own = copy.deepcopy(model.module.state_dict())
    {LOAD}averaged)
    value = sum(F.mse_loss(model(x), y) for x, y in loader)
    {{back}}
    return value

"""
EPOCHS = f"for epoch in range(3):\n    {TRAIN}\n    measure(model, loader, averaged)"


@pytest.mark.parametrize(
    ("back", "kind"),
    [
        (f"{LOAD}own)", Kind.KEPT),
        (f"if value > 0:\n        {LOAD}own)", Kind.TODO),
        (f"if value > 0:\n        return 0\n    {LOAD}own)", Kind.TODO),
        ("print(own)", Kind.TODO),
    ],
)
def test_weights_that_are_put_back_before_training_goes_on_stay(back: str, kind: Kind) -> None:
    converted(SWAP.format(back=back), EPOCHS).said("MG625", f"{LOAD}averaged)", kind)
