"""A model that changes between the load of its checkpoint and the wrap: the engine brings back what was saved."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import STATE, saving

LOOP = saving(f'torch.save({STATE}, "last.pt")')
READ = """
checkpoint = torch.load(args.resume, map_location="cpu")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
"""
GRID = """
class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.ones(4))


class Boxed(Net):
    def __init__(self):
        super().__init__()
        self.boxes = Boxes()

    def renew(self):
        self.head.reset_parameters()


def fit_boxes(data, net):
    boxes = net.module.boxes if hasattr(net, "module") else net.boxes
    grid = torch.tensor(data.sizes())
    if grid.mean() > 2:
        boxes.grid[:] = grid


def begin_again(layer):
    nn.init.zeros_(layer.weight)
"""


def early(text: str, *, before: str = "") -> Migrated:
    """A script that restores model and optimizer before the wrap, and goes on with ``text``."""
    return convert(
        helpers=GRID,
        wrap="model = Boxed().cuda()",
        resume=before + "if args.resume:\n" + indent(READ, "    ") + text + "\nmodel = DDP(model)\n",
        loop=LOOP,
    )


def is_told(migrated: Migrated) -> bool:
    return any(
        c.code == "MG622" and c.kind is Kind.TODO and "the model is changed here" in c.message for c in migrated.changes
    )


CHANGED = [
    "model.head.weight.data.zero_()",
    "nn.init.normal_(model.head.weight, std=0.01)",
    "model.head = nn.Linear(64, 10).cuda()",
    "model.head = nn.Linear(64, 10)",
    "model.boxes.grid[:] = 3",
    "model.boxes.grid.mul_(2)",
    "model.boxes.grid = torch.zeros(4)",
    "model.half().float()",
    'model.body.load_state_dict(torch.load("body.pt"))',
]


@pytest.mark.parametrize("line", CHANGED)
def test_a_model_that_is_changed_before_the_engine_loads_again_is_marked(line: str) -> None:
    told = early(line).said("MG622", f"    {line}", Kind.TODO)
    assert "resume_engine brings back what was saved" in told.message


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("fit_boxes(dataset, model)", "boxes.grid[:] = grid"),
        ("begin_again(model.head)", "nn.init.zeros_(layer.weight)"),
        ("model.renew()", "self.head.reset_parameters()"),
    ],
)
def test_a_change_in_a_function_that_gets_the_model_is_marked(call: str, line: str) -> None:
    early(call).said("MG622", line, Kind.TODO)
    assert not is_told(early("", before=f"{call}\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "else:\n    nn.init.zeros_(model.head.weight)",
        "if not args.resume:\n    nn.init.zeros_(model.head.weight)",
        "model.sizes = [3, 4]\nmodel.sizes[0] = 5\nmodel.train()\nmodel.head.requires_grad_(False)",
        "average = copy.deepcopy(model)\nnn.init.zeros_(average.head.weight)",
        "for p in model.body.parameters():\n    p.requires_grad = False",
        "other = nn.Linear(4, 4)\nnn.init.zeros_(other.weight)",
    ],
)
def test_what_does_not_change_a_model_that_was_loaded_is_no_change(text: str) -> None:
    assert not is_told(early(text))


@pytest.mark.parametrize(("where", "told"), [("between", True), ("before", False), ("behind", False)])
def test_a_change_between_the_two_loads_behind_the_wrap_is_marked(where: str, *, told: bool) -> None:
    line = "nn.init.zeros_(model.module.head.weight)\n"
    places = {place: line if place == where else "" for place in ("before", "between", "behind")}
    resume = """
        checkpoint = torch.load(args.resume, map_location="cpu")
        {before}
        model.module.load_state_dict(checkpoint["model"])
        {between}
        optimizer.load_state_dict(checkpoint["optimizer"])
        {behind}
        """
    migrated = convert(resume=dedent(resume).format(**places), loop=LOOP)
    assert is_told(migrated) is told
