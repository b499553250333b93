"""A resume that brings back the optimizer's state without the weights: the engine loads both, and that is said."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Change, Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import STATE, saving

ALONE = '{"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch}'
MADE = """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
"""
READ = 'state = torch.load(args.resume, map_location="cpu")\n'
OPTIMIZER = 'optimizer.load_state_dict(state["optimizer"])'


def resumed(text: str, *, kept: str = STATE, **parts: str) -> Migrated:
    """A script that goes on from a checkpoint by some lines."""
    lines = "".join(f"    {line}\n" for line in (READ + text).splitlines())
    return convert(resume=f"if args.resume:\n{lines}", loop=saving(f'torch.save({kept}, "last.pt")'), **parts)


def todos(migrated: Migrated) -> list[Change]:
    """What MG622 leaves to the person."""
    return [change for change in migrated.changes if change.code == "MG622" and change.kind is Kind.TODO]


@pytest.mark.parametrize("kept", [STATE, ALONE])
@pytest.mark.parametrize(
    "more",
    ["", 'start = state["epoch"] + 1\nbeta = state["beta"]\n', 'start = state.get("epoch", 0)\nprint(len(state))\n'],
)
def test_the_optimizers_state_alone_is_marked(kept: str, more: str) -> None:
    marked = todos(resumed(more + OPTIMIZER, kept=kept, optimizer=MADE))
    assert [change.message[:54] for change in marked] == ["only the optimizer's state was loaded from this checkp"]


@pytest.mark.parametrize(
    "text",
    [
        'model.module.load_state_dict(state["model"])\n' + OPTIMIZER,
        'fill(model.module, state["model"])\n' + OPTIMIZER,
        "fill(model.module, state)\n" + OPTIMIZER,
        "fill(model.module, state[args.key])\n" + OPTIMIZER,
        'model.module.encoder.load_state_dict(state["model"])\n' + OPTIMIZER,
        'if "model" in state:\n    model.module.load_state_dict(state["model"])\n' + OPTIMIZER,
        'if state["model"]:\n    model.module.load_state_dict(state["model"])\n' + OPTIMIZER,
        'if hasattr(model, "module"):\n    model.module.load_state_dict(state["model"])\n' + OPTIMIZER,
        'net = model.module\nif args.plain:\n    net.load_state_dict(state["model"])\n'
        'else:\n    model.load_state_dict(state["model"])\n' + OPTIMIZER,
    ],
)
def test_weights_that_come_back_with_it_are_not(text: str) -> None:
    assert not todos(resumed(text, imports="from loading import fill"))


def test_weights_from_elsewhere_are_spoken_of() -> None:
    migrated = resumed(OPTIMIZER, wrap='net = Net()\nnet.load_state_dict(torch.load("net.pt"))\nmodel = DDP(net)')
    said = [c for c in migrated.changes if c.code == "MG622" and "from elsewhere are replaced" in c.message]
    assert [change.kind for change in said] == [Kind.KEPT]


@pytest.mark.parametrize("test", ["args.old_weights", 'args.mode == "all"'])
def test_weights_under_a_condition_of_their_own_are_marked(test: str) -> None:
    load = f'if {test}:\n    model.module.load_state_dict(state["model"])\n'
    marked = todos(resumed(load + OPTIMIZER))
    assert ["whatever the condition around their load says" in change.message for change in marked] == [True]


BOTH = 'if args.mode == "new":\n    print(state)\nelif {first}:\n    {weights}\n{between}if {then}:\n    {optimizer}\n'


def twice(first: str, then: str, between: str = "") -> Migrated:
    weights = 'model.module.load_state_dict(state["model"])'
    return resumed(BOTH.format(first=first, then=then, between=between, weights=weights, optimizer=OPTIMIZER))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ('args.mode == "old"', 'args.mode == "old"'),
        ('args.mode == "old"', 'args.mode == "old" and args.amp'),
        ("os.path.exists(args.resume)", 'os.path.exists(args.resume) and args.mode == "old"'),
    ],
)
def test_weights_under_a_condition_that_the_optimizers_state_has_too_are_not(first: str, then: str) -> None:
    marked = todos(twice(first, then))
    assert not [change for change in marked if "whatever the condition" in change.message]


@pytest.mark.parametrize(
    ("first", "then", "between"),
    [
        ('args.mode == "old"', "args.amp", ""),
        ('args.mode == "old"', 'args.mode == "old"', 'args.mode = "old"\n'),
        ("args.amp", "args.amp", ""),  # the first branch may have been taken
        ("ask(args)", "ask(args)", ""),
    ],
)
def test_weights_under_a_condition_that_may_have_been_another_are_marked(first: str, then: str, between: str) -> None:
    marked = todos(twice(first, then, between))
    assert [change for change in marked if "whatever the condition" in change.message]
