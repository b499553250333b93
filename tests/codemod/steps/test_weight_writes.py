"""Weights that the script itself writes to, or loads into a part of the model, after the engine is made."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

STEP = """
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """


def with_line(line: str, **parts: str) -> dict[str, str]:
    """The sections of a script that runs a line behind every step."""
    indented = "".join(f"        {text}\n" for text in line.splitlines())
    return {"loop": STEP.rstrip(" ") + indented, **parts}


@pytest.mark.parametrize(
    "line",
    [
        "model.module.head.weight.copy_(target)",
        "model.module.head.weight.data.clamp_(-1, 1)",
        "model.module.head.weight.data = target",
        "model.module.head.weight.data[mask] = 0.0",
        "model.module.head.bias[0] = 0.0",
        "model.module.head.weight.data *= mask",
        "getattr(model.module, 'head').weight.copy_(target)",
        "nn.init.zeros_(model.module.head.bias)",
        "for p in model.parameters(): p.data.clamp_(-1, 1)",
        "for name, p in model.module.named_parameters(): p.data = ema[name]",
        "for p, q in zip(model.parameters(), saved): p.data.copy_(q)",
        "for layer in model.module.modules(): nn.init.zeros_(layer.bias)",
        "dict(model.named_parameters())[name].data.mul_(0.9)",
        "weights = {n: p for n, p in model.named_parameters()}; weights[name].data.mul_(0.9)",
        "torch.nn.utils.vector_to_parameters(flat, model.parameters())",
    ],
)
def test_a_write_to_weights_needs_stage_zero(line: str) -> None:
    names = "target, mask, ema, saved, flat, name = load()"
    migrated = convert(**with_line(line, imports="from torch import nn\nfrom data import load", resume=names))
    migrated.said("MG509", line.rpartition(": ")[2], Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0


def test_a_function_that_is_applied_to_the_model_writes_too() -> None:
    helpers = """
        def initialise(layer):
            if isinstance(layer, torch.nn.Linear):
                layer.weight.data.normal_(0.0, 0.02)
        """
    migrated = convert(helpers=helpers, resume="model.apply(initialise)")
    migrated.said("MG509", "model.apply(initialise)", Kind.KEPT)


def test_at_a_stage_that_was_asked_for_the_write_is_left_to_the_person() -> None:
    line = "model.module.head.weight.data.clamp_(-1, 1)"
    migrated = convert(to={"zero_stage": 2}, **with_line(line))
    migrated.said("MG509", line, Kind.TODO)
    assert migrated.config["zero_optimization"]["stage"] == 2


@pytest.mark.parametrize(
    "line",
    [
        "model.module.running_mean.zero_()",
        "model.module.head.requires_grad_(True)",
        "x.clamp_(0, 1)",
        "for p, q in zip(ema.parameters(), model.module.parameters()): p.data.mul_(0.99).add_(q.data, alpha=0.01)",
        "table['weight'] = model.module.head.weight",
        "weight = model.module.head.weight.detach().clone()",
    ],
)
def test_what_leaves_the_trained_weights_alone(line: str) -> None:
    made = "ema = copy.deepcopy(model.module)\ntable = {}"
    convert(**with_line(line, imports="import copy", resume=made)).silent("MG509")


def test_weights_that_are_written_before_the_engine_is_made_are_right() -> None:
    convert(wrap="model = Net().cuda()\ntorch.nn.init.zeros_(model.layers.bias)\nmodel = DDP(model)").silent("MG509")


def test_a_model_that_a_function_makes_for_its_callers_is_not_the_engines() -> None:
    helpers = """
        def build(path=None):
            net = Net()
            net.layers.weight.data.normal_(0.0, 0.02)
            if path is not None:
                net.load_state_dict(torch.load(path))
            return net
        """
    migrated = convert(helpers=helpers, wrap="model = DDP(build().cuda())", end='print(build("model.pt"))')
    migrated.silent("MG509", "MG625")


def test_another_model_under_the_same_name_is_not_the_engines() -> None:
    end = 'for path in ("a.pt", "b.pt"):\n    model = Net()\n    model.load_state_dict(torch.load(path))\n'
    convert(end=end).silent("MG509", "MG625")


# -- parts of the model ------------------------------------------------------------------------------------------------


def test_weights_loaded_into_a_part_behind_the_engine_are_left_to_the_person() -> None:
    load = 'model.module.encoder.load_state_dict(torch.load("encoder.pt"))'
    convert(resume=load).said("MG625", load, Kind.TODO)


def test_at_stage_zero_loaded_weights_stay() -> None:
    load = 'model.module.encoder.load_state_dict(torch.load("encoder.pt"))'
    convert(resume=load, to={"zero_stage": 0}).said("MG625", load, Kind.KEPT)


def test_parts_of_a_resumed_checkpoint_come_back_with_the_engine() -> None:
    load = 'model.module.encoder.load_state_dict(found["encoder"])'
    migrated = convert(
        resume=f'found = torch.load("last.pt")\n{load}\noptimizer.load_state_dict(found["optimizer"])\n',
    )
    migrated.said("MG625", load, Kind.KEPT)


PRUNE = "from torch.nn.utils import prune"


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        ("def f(layer):\n    layer.weight.data = F.normalize(layer.weight.data, dim=1)", "f(model.module.body)"),
        ("def f(net):\n    for p in net.parameters():\n        p.data.clamp_(-1, 1)", "f(model.module.head)"),
        ("def f(layer):\n    g(layer)\n\n\ndef g(part):\n    part.weight.data.mul_(0.9)", "f(model.module.body)"),
        ("", "w = model.module.body.weight.data; w.clamp_(-1, 1)"),
        ("", "layer = model.module.body; layer.weight.data.zero_()"),
        ("", 'prune.remove(model.module.body, "weight")'),
        ("", "model.module.body.reset_parameters()"),
        ("", 'model.module.apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)'),
    ],
)
def test_a_layer_that_is_handed_on_is_the_models(helper: str, call: str) -> None:
    migrated = convert(
        helpers=f"{helper}\n\n\n" if helper else "", end=call, imports="from torch.nn.utils import prune"
    )
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert "MG509" in [change.code for change in migrated.changes]


def test_a_layer_of_another_model_is_not() -> None:
    helper = "def f(layer):\n    layer.weight.data = F.normalize(layer.weight.data, dim=1)\n\n\n"
    convert(helpers=helper, end="other = Net()\nf(other.body)").silent("MG509")


@pytest.mark.parametrize("line", ["layer = layer.body", "layer = other.body\nother = layer.head", "layer = layer[0]"])
def test_names_that_lead_to_each_other_end_somewhere(line: str) -> None:
    convert(end=f"other = layer = Net()\n{line}\nlayer.weight.data.zero_()\nlayer.reset_parameters()").silent("MG509")
