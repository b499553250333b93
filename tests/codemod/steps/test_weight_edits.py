"""Edits of trained weights after the engine is made: undone at the next step at ZeRO 1-3, so ZeRO 0 or a mark."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

STEPS = (
    "for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n"
    "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
)


def after_each_step(text: str, stage: int | None = None, **parts: str) -> Migrated:
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    return convert(loop=STEPS + lines, to={"zero_stage": stage} if stage is not None else None, **parts)


EDITS = [
    "for p in model.parameters():\n    p.data.clamp_(-0.1, 0.1)",
    "with torch.no_grad():\n    for p in model.parameters():\n        p.clamp_(-0.1, 0.1)",
    "for name, p in model.module.named_parameters():\n    p.data *= masks[name]",
    "for p, mask in zip(model.parameters(), masks):\n    p.data = p.data * mask",
    "for i, (p, mask) in enumerate(zip(model.parameters(), masks)):\n    p.data.mul_(mask)",
    "for s, t in zip(model.parameters(), teacher.parameters()):\n    s.data.copy_(t.data)",
    "for w in model.state_dict().values():\n    w.mul_(0.5)",
    "with torch.no_grad():\n    model.module.logit_scale.clamp_(0, 4.6)",
    "model.module.head.weight.data.mul_(0.5)",
    "model.module.head.weight.data[0] = 0.0",
    "nn.init.zeros_(model.module.head.bias)",
]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_after_the_step_keeps_the_training_at_stage_0(edit: str) -> None:
    parts = {"data": _DATA}
    migrated = after_each_step(edit, **parts)
    migrated.said("MG509", edit.splitlines()[-1], Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0
    after_each_step(edit, 2, **parts).said("MG509", edit.splitlines()[-1], Kind.TODO)


_DATA = """
dataset = Digits("train")
masks, teacher = {}, Net()
train_loader = DataLoader(dataset, batch_size=args.batch_size, sampler=DistributedSampler(dataset))
"""


@pytest.mark.parametrize(
    "text",
    [
        "for t, s in zip(teacher.parameters(), model.parameters()):\n    t.data.mul_(0.9).add_(s.data, alpha=0.1)",
        "for p in model.parameters():\n    print(p.norm())",
        "for p in teacher.parameters():\n    p.data.zero_()",
        "for p in model.parameters():\n    p.requires_grad_(True)",
        "total = torch.zeros(1)\nfor p in model.parameters():\n    total.add_(p.norm())",
        "model.module.training = True",
    ],
)
def test_what_leaves_the_trained_weights_alone(text: str) -> None:
    migrated = after_each_step(text, 2, data=_DATA)
    migrated.silent("MG509")


def test_weights_that_are_set_before_the_engine_is_made() -> None:
    wrap = "net = Net().cuda()\nfor p in net.parameters():\n    p.data.normal_(0, 0.02)\nmodel = DDP(net)"
    convert(wrap=wrap, to={"zero_stage": 2}).silent("MG509")


@pytest.mark.parametrize("name", ["clamp", "remap", "average"])
def test_an_edit_in_a_helper_is_seen(name: str) -> None:
    helpers = f"def {name}(net):\n    for p in net.parameters():\n        p.data.clamp_(-1, 1)\n"
    after_each_step(f"{name}(model.module)", 1, helpers=helpers).said("MG509", "p.data.clamp_", Kind.TODO)


def test_half_precision_weights_are_written_from_a_copy_at_every_stage() -> None:
    migrated = after_each_step("model.module.head.weight.data.mul_(0.5)", wrap="model = DDP(Net().cuda().bfloat16())")
    assert migrated.config["bf16"]["enabled"] is True
    migrated.said("MG509", "model.module.head.weight", Kind.TODO)


OWN = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Net()
        self.scale = nn.Parameter(torch.ones(()), requires_grad={trained})

    def forward(self, x):
        with torch.no_grad():
            self.scale.clamp_(0.1, 2.0)
        return self.body(x) * self.scale
"""


def test_a_parameter_that_the_model_clamps_in_its_own_forward() -> None:
    wrap = "model = DDP(Scaled().cuda())"
    migrated = convert(helpers=OWN.format(trained=True), wrap=wrap)
    migrated.said("MG509", "self.scale.clamp_", Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0
    convert(helpers=OWN.format(trained=False), wrap=wrap).silent("MG509")
