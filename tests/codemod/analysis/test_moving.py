"""A function that is called from several places does there what it does, in things of each place."""

from __future__ import annotations

import textwrap

from dsmigrate.codemod.analysis.analysis import Analysis, analysed
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.values import Obj, each
from dsmigrate.codemod.program.project import Project

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, scale=None):
        if x.dim() != 2:
            raise ValueError("two dimensions")
        found = {{"logits": self.layer(x.to(torch.float32)), "parts": []}}
        for index in range(3):
            found["parts"].append(self.layer(x) * index)
        if scale is not None:
            found["logits"] = found["logits"] * scale
        return found

def build():
    made = []
    for name in ("one", "two"):
        made.append({{"name": name, "size": len(name), "extra": [name, name.upper()]}})
    layers = [nn.Linear(2, 2), nn.Linear(3, 3)]
    return {{"parts": made, "net": nn.Linear(4, 4), "other": nn.Linear(4, 4), "layers": layers}}

net = Net()
data = torch.zeros(2, 4)
{calls}
"""


def run_of(calls: str) -> Analysis:
    text = SCRIPT.format(calls=textwrap.dedent(calls))
    return analysed(Project({"train.py": text.encode()}.get, "train.py"))


def values(analysis: Analysis, name: str) -> list[object]:
    return list(each(analysis.run.modules["train.py"].own[name]))


def test_what_two_calls_make_are_two_things() -> None:
    analysis = run_of("first = build()\nsecond = build()\nfirst['name'] = 1")
    (one,), (other,) = values(analysis, "first"), values(analysis, "second")
    assert isinstance(one, Obj)
    assert isinstance(other, Obj)
    assert one is not other
    assert one.own.keys() == other.own.keys() | {"name"}
    for key in other.own:
        held = one.own[key], other.own[key]
        assert held[0] is not held[1]
        assert all(isinstance(part, Obj) and part.own.keys() == held[0].own.keys() for part in held)  # type: ignore[union-attr]


def test_a_forward_from_another_place_is_another_forward() -> None:
    analysis = run_of(
        "before = net(data)\nafter = net(data)\nloss = before['logits'].sum() + after['logits'].sum()\nloss.backward()"
    )
    forwards = list(analysis.of(Happening.FORWARD))
    assert len(forwards) == 2
    (backward,) = analysis.of(Happening.BACKWARD)
    (loss,) = each(backward["loss"])
    assert {forward.node for forward in loss.forwards} == {event.node for event in forwards}  # type: ignore[union-attr]


def test_events_of_a_call_say_where_it_was_called_from() -> None:
    analysis = run_of("net(data)\nnet(data)\nnet(data)")
    moved = [event for event in analysis.of(Happening.MOVED) if event.module.text(event.node) == "x.to(torch.float32)"]  # type: ignore[arg-type]
    assert len(moved) == 3
    assert len({event.node for event in moved}) == 1
    assert len({event.context for event in moved}) == 3
    lines = [[block.node.lineno for block in event.block.around() if block.node is not None][-1] for event in moved]  # type: ignore[attr-defined]
    assert lines == [lines[0], lines[0] + 1, lines[0] + 2]


def test_a_call_like_one_before_is_not_run() -> None:
    once, twice, thrice = (run_of("net(data)\n" * count).run.steps for count in (1, 2, 3))
    assert twice - once > 40  # two dimensions are known now
    assert thrice - twice < 10


def test_where_the_arguments_differ_the_call_is_run() -> None:
    analysis = run_of("before = net(data)\nafter = net(data, scale=2)\nbefore['parts'] = None")
    (one,), (other,) = values(analysis, "before"), values(analysis, "after")
    assert isinstance(one, Obj)
    assert isinstance(other, Obj)
    assert isinstance(other.own["parts"], Obj)
    assert one is not other
