"""A script that offers DeepSpeed beside DDP, by another name for deepspeed.initialize, keeps that branch as it is."""

from __future__ import annotations

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

HELPERS = """
    def choose(args):
        if args.amp:
            import deepspeed

            make = deepspeed.initialize
        else:
            make = None
        return args, make
    """
OPTIMIZER = """
    _, make = choose(args)
    if args.amp:
        net, optimizer, _, _ = make(args=args, model=net, model_parameters=net.parameters())
    else:
        if args.distributed:
            net = DDP(net)
        optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
    """
LOOP = """
    for x, y in train_loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        if args.amp:
            net.backward(loss)
            net.step()
        else:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
MADE = "    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)\n"


def migrated() -> Migrated:
    return convert(wrap="net = Net().cuda()\n", helpers=HELPERS, optimizer=OPTIMIZER, loop=LOOP)


def test_the_engine_is_made_in_the_branch_of_the_wrap_only() -> None:
    lines = migrated().section("optimizer").splitlines()
    made = [line for line in lines if "deepspeed.initialize(" in line]
    assert [len(line) - len(line.lstrip()) for line in made] == [4]
    assert "    net, optimizer, _, _ = make(args=args, model=net, model_parameters=net.parameters())" in lines


def test_what_is_said_of_it_is_true_for_the_branch_that_it_stands_in() -> None:
    told = migrated().said("MG904", "make = deepspeed.initialize", Kind.TODO)
    assert "the lines converted for the engine of the other path run with it too" in told.message
    after = "    _, make = choose(args)\n    if args.amp:\n        net = make(model=net)[0]\n    net = DDP(net)\n"
    found = convert(wrap="net = Net().cuda()\n", helpers=HELPERS, optimizer=after + MADE, loop=LOOP)
    assert "would wrap that one" in found.said("MG904", "make = deepspeed.initialize", Kind.TODO).message


def test_its_own_backward_and_step_stay() -> None:
    lines = [line.strip() for line in migrated().section("loop").splitlines()]
    assert lines[-2:] == ["net.backward(loss)", "net.step()"]  # both branches say the same now


def test_what_makes_the_engine_is_no_optimizer() -> None:
    assert not [c for c in migrated().changes if c.code in ("MG601", "MG603")]
