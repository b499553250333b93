"""Data classes, named tuples and namespaces that carry the objects of a training."""

from __future__ import annotations

import pytest

from tests.codemod.across.together import convert, refused

ENTRY = """
    import types
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from loop import State, train_one_epoch

    def main(amp):
        dist.init_process_group("nccl")
        net = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        grad_scaler = torch.cuda.amp.GradScaler(enabled=amp)
        run = State(net, optimizer=opt, scaler=grad_scaler)
        for epoch in range(3):
            train_one_epoch(run, loader)

    main(True)
    """
LOOP = """
    import dataclasses
    import typing
    import torch

    @dataclasses.dataclass
    class State:
        count: typing.ClassVar[int] = 0
        model: object
        optimizer: object = None
        scaler: object = None
        epoch: int = 0

    def backward(loss, scaler):
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()

    def train_one_epoch(state, loader):
        model, optimizer, scaler = state.model, state.optimizer, state.scaler
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = model(x).sum()
            backward(loss, scaler)
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
    """


@pytest.mark.parametrize(
    ("head", "instead"),
    [
        ("@dataclasses.dataclass\n    class State:", "@dataclasses.dataclass(slots=True)\n    class State:"),
        (
            "@dataclasses.dataclass\n    class State:\n        count: typing.ClassVar[int] = 0\n",
            "class State(typing.NamedTuple):\n",
        ),
    ],
)
def test_what_a_record_is_made_with_is_what_its_fields_hold(head: str, instead: str) -> None:
    for loop in (LOOP, LOOP.replace(head, instead)):
        project = convert({"train.py": ENTRY, "loop.py": loop})
        after = project.after("loop.py")
        assert "scaler.engine_step(model)" in after
        assert "model.step()" in after
        assert "backward(loss, scaler, engine=model)" in after
        assert "update()" not in after
        assert project.result.entry.config is not None
        assert project.result.entry.config["torch_autocast"]["enabled"] is True


def test_fields_come_in_the_order_of_the_bases() -> None:
    loop = LOOP.replace(
        "    @dataclasses.dataclass\n    class State:\n        count: typing.ClassVar[int] = 0\n"
        "        model: object\n",
        "    @dataclasses.dataclass\n    class First:\n        model: object\n\n"
        "    @dataclasses.dataclass\n    class State(First):\n",
    )
    assert "class First" in loop
    assert "model.step()" in convert({"train.py": ENTRY, "loop.py": loop}).after("loop.py")


def test_a_namespace_holds_what_it_is_made_with() -> None:
    entry = ENTRY.replace("import State, ", "import ").replace("State(net, ", "types.SimpleNamespace(model=net, ")
    loop = LOOP.replace("train_one_epoch(state", "train_one_epoch(run").replace("state.", "run.")
    assert "scaler.engine_step(model)" in convert({"train.py": entry, "loop.py": loop}).after("loop.py")


def test_a_scaler_that_came_by_another_way_still_steps_the_engine() -> None:
    loop = LOOP.replace("state.scaler\n", "find_scaler(state)\n")
    assert "scaler.engine_step(model)" in convert({"train.py": ENTRY, "loop.py": loop}).after("loop.py")


def test_an_optimizer_that_is_given_away_to_be_stepped_is_refused() -> None:
    loop = LOOP.replace("scaler.step(optimizer)\n                scaler.update()", "strategy.step(optimizer)")
    refused({"train.py": ENTRY, "loop.py": loop}, "MG913", "strategy.step(optimizer) steps the optimizer")
