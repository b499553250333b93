"""Helpers that make model, wrap and optimizer at once: their callers see the engine from the call on, not before."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

# The name of the parameter is that of the wrapped model; so may be the name in the caller.
SETUP = """
    def setup(model, args):
        model = DDP(model.cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
        return model, optimizer


    def evaluate(net, batches):
        net.eval()
        with torch.no_grad():
            for x, y in batches:
                print(F.cross_entropy(net(x), y))
        net.train()
    """
LOOP = """
    for x, y in train_loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy({name}(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evaluate({name}, train_loader)
    """
RESUME = """
    if args.resume:
        found = torch.load(args.resume)
        {name}.module.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
    """
SAVE = """
    if rank == 0:
        torch.save({{"model": {name}.module.state_dict(), "optimizer": optimizer.state_dict()}}, "last.pt")
    """


@pytest.mark.parametrize("name", ["model", "net"])
def test_behind_a_helper_that_returns_the_engine_its_caller_has_the_engine(name: str) -> None:
    migrated = convert(
        helpers=SETUP,
        wrap=f"{name}, optimizer = setup(Net(), args)",
        optimizer="",
        resume=RESUME.format(name=name),
        loop=LOOP.format(name=name) + SAVE.format(name=name),
    )
    assert "resume_engine" not in migrated.section("helpers")
    assert migrated.section("resume") == (
        f"if args.resume:\n    found = read_checkpoint(args.resume)\n    resume_engine({name})\n"
    )
    assert "F.cross_entropy(net.module(x), y)" in migrated.section("helpers")
    migrated.said("MG306", "F.cross_entropy(net(x), y)")
    assert f"save_requested_checkpoints({name})" in migrated.section("loop")


def test_before_such_a_helper_is_called_its_caller_has_the_plain_model() -> None:
    load = 'model.load_state_dict(torch.load("pretrained.pt"))'
    migrated = convert(
        helpers=SETUP,
        wrap=f"model = Net()\n{load}\nmodel, optimizer = setup(model, args)",
        optimizer="",
        loop=LOOP.format(name="model"),
    )
    assert load in migrated.section("wrap")
    migrated.silent("MG625")


def test_weights_loaded_behind_such_a_helper_are_left_to_the_person() -> None:
    load = 'model.module.load_state_dict(torch.load("pretrained.pt"))'
    migrated = convert(
        helpers=SETUP,
        wrap="model, optimizer = setup(Net(), args)",
        optimizer="",
        resume=load,
        loop=LOOP.format(name="model"),
    )
    migrated.said("MG625", load, Kind.TODO)


def test_a_caller_that_wraps_and_never_gets_the_engine_back_keeps_the_plain_model() -> None:
    migrated = convert(
        helpers="""
            def fit(model, batches, args):
                optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
                for x, y in batches:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
            """,
        optimizer="",
        loop="fit(model, train_loader, args)",
        end="torch.save(model.module.state_dict(), 'model.pt')",
    )
    assert migrated.section("end") == "torch.save(model.state_dict(), 'model.pt')\n"
