"""Writes to weights behind the engine in rarer words: objects, lists, ``*=``, entries of a state dict."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

HELPERS = """
class Limit:
    def __call__(self, layer):
        if hasattr(layer, "weight"):
            layer.weight.data = layer.weight.data.clamp(-1, 1)

    def part(self, layer):
        if hasattr(layer, "weight"):
            layer.weight.data.clamp_(-1, 1)


class Size:
    def __call__(self, layer):
        print(type(layer))


def shrink(w):
    w.data.mul_(0.9)


def decay(layer, factor):
    layer.weight *= factor


def limited(layer, *_):
    with torch.no_grad():
        layer.weight.clamp_(-1, 1)


def shown(layer, inputs, output):
    print(layer.weight.norm(), output.detach().clamp_(0, 1))


def restart(layer):
    if hasattr(layer, "reset_parameters"):
        layer.reset_parameters()


def restart_all(net):
    for layer in net.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
        restart_all(layer)
"""
MADE = "import copy\nfrom functools import partial\nfrom torch import nn\nfrom timm.models.layers import trunc_normal_"


def after_each_step(text: str, **parts: str) -> Migrated:
    """A script that runs some lines behind every step."""
    steps = (
        "for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    )
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    return convert(loop=steps + lines, helpers=HELPERS, imports=MADE, resume="limit = Limit()\nmean = Net()", **parts)


@pytest.mark.parametrize(
    "text",
    [
        "model.apply(Limit())",
        "model.module.apply(limit)",
        "model.apply(partial(decay, factor=0.9))",
        "for layer in model.modules():\n    limit.part(layer)",
        "for p in model.parameters():\n    shrink(p)",
        "for p in model.parameters():\n    p -= 0.1 * p",
        "for name, p in model.module.named_parameters():\n    p *= 0.9",
        "w = model.module.fc.weight\nw *= 0.9",
        "model.module.fc.weight /= model.module.fc.weight.norm()",
        "torch._foreach_clamp_min_(list(model.parameters()), -0.1)",
        "torch._foreach_mul_([p.data for n, p in model.named_parameters() if 'bias' in n], 0.9)",
        "torch._foreach_mul_([model.module.fc.weight, model.module.fc.bias], 0.9)",
        "torch.clamp_(model.module.fc.weight.data, -1, 1)",
        "trunc_normal_(model.module.fc.weight, std=0.02)",
        "nn.init.constant(model.module.fc.bias, 0.0)",
        "found = model.module.state_dict()\nfound['fc.weight'].clamp_(-1, 1)",
        "found = model.state_dict()\nfor key in found:\n    found[key].mul_(0.9)",
        "found = model.state_dict()\nfor key, value in found.items():\n    value *= 0.9",
        "model.state_dict()['fc.weight'][0] = 0.0",
        "model.module.get_parameter('fc.bias').data.fill_(3.0)",
        "model.module.get_submodule('fc').weight.data.fill_(3.0)",
        "for p in model.parameters():\n    setattr(p, 'data', torch.zeros_like(p))",
        "model.module.fc.bias.detach().numpy()[:] = 0.5",
        "for m in model.modules():\n    if isinstance(m, nn.Linear):\n        m.reset_parameters()",
        "for m in model.module.children():\n    if hasattr(m, 'reset_parameters'):\n        m.reset_parameters()",
        "for m in model.module.body:\n    m.reset_parameters()",
        "for m in model.module.body:\n    nn.init.xavier_uniform_(m.weight)",
        "for i, m in enumerate(model.module.body):\n    nn.init.zeros_(m.bias)",
        "for name, m in model.module.named_modules():\n    m.apply(restart)",
        "for m in model.module._modules.values():\n    m.reset_parameters()",
        "for m in model.module.modules():\n    restart(m)",
        "model.apply(restart)",
        "model.apply(lambda m: restart(m))",
        "layers = [m for m in model.modules() if isinstance(m, nn.Linear)]\nfor m in layers:\n    m.reset_parameters()",
        "[m.reset_parameters() for m in model.modules() if hasattr(m, 'reset_parameters')]",
        "restart_all(model.module)",
        "restart_all(model)",
        "model.module.body[0].reset_parameters()",
        "model.module.body.init_weights()",
        "model.module.fc.register_forward_pre_hook(limited)",
        "for m in model.modules():\n    m.register_forward_hook(limited)",
    ],
)
def test_a_write_in_any_words_keeps_the_training_at_stage_0(text: str) -> None:
    migrated = after_each_step(text)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert [change.kind for change in migrated.changes if change.code == "MG509"] == [Kind.KEPT]


@pytest.mark.parametrize(
    "text",
    [
        "model.apply(Size())",
        "for p in mean.parameters():\n    p *= 0.9",
        "for p, q in zip(mean.parameters(), model.parameters()):\n    p *= 0.9\n    p += 0.1 * q",
        "count = model.module.token_count\ncount += 1",
        "model.module.scale_step *= 2",
        "total = 0.0\nfor p in model.parameters():\n    total += p.norm()",
        "torch._foreach_mul_([p.grad for p in model.parameters()], 0.5)",
        "torch._foreach_mul_([p.clone() for p in model.parameters()], 0.5)",
        "torch._foreach_mul_(list(mean.parameters()), 0.5)",
        "found = model.state_dict()\nfound['epoch'] = 1",
        "found = torch.load('f')\nfound = {k[7:]: v for k, v in found.items()}\nfor v in found.values():\n    v *= 2",
        "found = copy.deepcopy(model.state_dict())\nfound['fc.weight'].mul_(0.5)",
        "found = model.state_dict()\nfound['bn.running_mean'].zero_()",
        "kept = mean.state_dict()\nfor key, value in model.state_dict().items():\n    kept[key] *= 0.9",
        "rows = model.module.fc.weight.detach().cpu().numpy()",
        "for m in mean.modules():\n    if hasattr(m, 'reset_parameters'):\n        m.reset_parameters()",
        "for m in mean.body:\n    nn.init.zeros_(m.weight)",
        "restart_all(mean)",
        "mean.apply(restart)",
        "mean.fc.register_forward_pre_hook(limited)",
        "model.module.fc.register_forward_hook(shown)",
        "for m in model.modules():\n    if isinstance(m, nn.BatchNorm2d):\n        m.reset_running_stats()",
    ],
)
def test_what_is_no_write_to_trained_weights(text: str) -> None:
    after_each_step(text).silent("MG509")


def test_a_parameter_of_any_name_is_a_tensor() -> None:
    net = "class Scaled(torch.nn.Module):\n    def __init__(self):\n        self.scale = nn.Parameter(torch.ones(1))\n"
    migrated = convert(helpers=net, wrap="model = DDP(Scaled().cuda())", end="model.module.scale *= 2")
    migrated.said("MG509", "model.module.scale *= 2", Kind.KEPT)
