"""Clipped gradients, their norms, and code that looks at gradients between backward and step."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.converting import HEAD, Converted, converted

SCRIPT = (
    HEAD
    + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
{helpers}
dist.init_process_group("nccl")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
    def forward(self, x):
        return self.head(self.body(x))
model = DDP(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    model(x).sum().backward()
{before}    optimizer.step()
{behind}
"""
)


def script(before: str = "", behind: str = "", helpers: str = "", **options: object) -> Converted:
    lines = ["".join(f"    {line}\n" for line in part.splitlines()) for part in (before, behind)]
    return converted(SCRIPT.format(helpers=helpers, before=lines[0], behind=lines[1]), **options)


@pytest.mark.parametrize(
    ("helpers", "line"),
    [
        ("", "nn.utils.clip_grad_norm_(model.parameters(), 0.5)"),
        ("", "nn.utils.clip_grad_norm_(parameters=model.parameters(), max_norm=0.5, norm_type=2)"),
        ("", "torch.nn.utils.clip_grad_norm(model.module.parameters(), 0.5, error_if_nonfinite=False)"),
        ("from torch.nn.utils import clip_grad_norm_ as clip", "clip(list(model.parameters()), 0.5)"),
        (
            "from torch.nn import utils",
            "utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 0.5)",
        ),
        ("", "nn.utils.clip_grad_norm_(filter(lambda p: p.requires_grad, model.parameters()), 0.5)"),
        ("", "nn.utils.clip_grad_norm_((w for w in model.parameters() if w.requires_grad is True), 0.5)"),
        ("", "nn.utils.clip_grad_norm_(optimizer.param_groups[0]['params'], 0.5)"),
        ("clip = nn.utils.clip_grad_norm_", "clip(model.parameters(), 0.5)"),
        ("def clip(net, limit=0.5):\n    nn.utils.clip_grad_norm_(net.parameters(), limit)", "clip(model)"),
    ],
)
def test_every_spelling_of_the_clip(helpers: str, line: str) -> None:
    found = script(line, helpers=helpers)
    assert found.config["gradient_clipping"] == 0.5
    assert found.config["zero_optimization"] == {"stage": 2}
    assert not found.todos
    assert "MG423" not in found.codes(Kind.KEPT)


@pytest.mark.parametrize("test", ["args.clip", "args.clip > 0", "args.clip is not None", "args.clip != 0.0"])
def test_a_guard_that_asks_for_the_limit_goes_with_it(test: str) -> None:
    found = script(f"if {test}:\n    nn.utils.clip_grad_norm_(model.parameters(), args.clip)")
    assert "gradient_clipping=args.clip" in found.text
    assert "clip_grad_norm_" not in found.text
    assert found.config["gradient_clipping"] == 1.0


def test_two_limits_follow_their_test() -> None:
    found = script("nn.utils.clip_grad_norm_(model.parameters(), 0.5 if args.amp else 5.0)")
    assert "gradient_clipping=0.5 if args.amp else 5.0" in found.text


def test_a_norm_measured_without_a_limit_does_not_clip() -> None:
    found = script("norm = nn.utils.clip_grad_norm_(model.parameters(), float('inf'))", "print(norm)")
    assert found.config["gradient_clipping"] == 0.0
    assert "ds_compat.grad_norm(model)" in found.text


STAYS = {
    "by value": "nn.utils.clip_grad_value_(model.parameters(), 0.5)",
    "another norm": "nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=1)",
    "a part": "nn.utils.clip_grad_norm_(model.module.head.parameters(), 0.5)",
    "one weight": "nn.utils.clip_grad_norm_([model.module.head.weight], 0.5)",
    "each parameter": "for p in model.parameters():\n    nn.utils.clip_grad_norm_(p, 0.5)",
    "those that are not trained": (
        "nn.utils.clip_grad_norm_([p for p in model.parameters() if not p.requires_grad], 0.5)"
    ),
    "an error": "nn.utils.clip_grad_norm_(model.parameters(), 0.5, error_if_nonfinite=True)",
    "a part is cleared behind it": "nn.utils.clip_grad_norm_(model.parameters(), 0.5)\nmodel.module.head.zero_grad()",
    "gradients are changed behind it": (
        "nn.utils.clip_grad_norm_(model.parameters(), 0.5)\nmodel.module.head.weight.grad.mul_(0.1)"
    ),
    "unread code behind it": "nn.utils.clip_grad_norm_(model.parameters(), 0.5)\ntricks.cancel(model)",
}


@pytest.mark.parametrize("lines", STAYS.values(), ids=STAYS)
def test_other_clips_stay_at_stage_0(lines: str) -> None:
    found = script(lines, helpers="import tricks")
    assert found.said("MG423", Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 0}
    assert found.config["gradient_clipping"] == 0.0
    assert lines.splitlines()[0] in found.text
    assert script(lines, helpers="import tricks", zero_stage=1).said("MG423", Kind.TODO)


def test_a_clip_behind_the_step_is_said_to_clip_nothing() -> None:
    found = script(behind="nn.utils.clip_grad_norm_(model.parameters(), 0.5)")
    assert found.said("MG423", Kind.KEPT).message.startswith("this clip comes after the step")
    assert found.config["zero_optimization"] == {"stage": 2}
    assert found.config["gradient_clipping"] == 0.0
    assert script(behind="norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)").said("MG410", Kind.TODO)


LOOKS = {
    "changed": "model.module.head.weight.grad.mul_(0.1)",
    "exchanged": "dist.all_reduce(model.module.head.bias.grad)",
    "read": "print([p.grad.norm() for p in model.module.head.parameters()])",
    "written": "for p in model.parameters():\n    p.grad = p.grad + 0.1 * p",
    "read by a function": "largest(model)",
    "given to unread code": "tricks.scale(model)",
    "of given parameters": "tricks.scale(list(model.parameters()))",
}


@pytest.mark.parametrize("lines", LOOKS.values(), ids=LOOKS)
def test_code_that_looks_at_gradients_works_at_stage_0(lines: str) -> None:
    helpers = "import tricks\ndef largest(net):\n    return max(p.grad.abs().max() for p in net.parameters())"
    found = script(lines, helpers=helpers)
    assert found.said("MG409", Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 0}
    assert script(lines, helpers=helpers, zero_stage=2).said("MG409", Kind.TODO)


def test_what_looks_before_and_behind_the_step_is_both() -> None:
    found = script(
        "print(largest(model))",
        "print(largest(model))",
        "def largest(net):\n    return max(p.grad.abs().max() for p in net.parameters())",
    )
    assert found.said("MG409", Kind.KEPT)


def test_gradients_behind_the_step_are_gone() -> None:
    assert script(behind="print(model.module.head.weight.grad)").said("MG410", Kind.TODO)


def test_what_comes_behind_the_step_may_be_unread() -> None:
    found = script(behind="tricks.average(model)", helpers="import tricks")
    assert found.config["zero_optimization"] == {"stage": 2}
    assert "MG409" not in found.codes(Kind.KEPT)


def test_a_function_that_is_handed_to_unread_code_trains_on_each_batch() -> None:
    found = converted(
        HEAD
        + """
        from ignite.engine import Engine

        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def update(engine, batch):
            loss = model(batch.cuda()).sum() / 4
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if engine.state.iteration % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()

        Engine(update).run(data, max_epochs=3)
        """
    )
    assert "gradients are added to what it clipped" in found.said("MG423", Kind.KEPT).reason
    assert "clip_grad_norm_(model.parameters(), 1.0)" in found.text
    assert found.config["zero_optimization"]["stage"] == 0


def test_a_limit_of_a_file_is_said_by_the_tree_that_holds_it() -> None:
    found = converted(
        HEAD
        + """
        import yaml
        from easydict import EasyDict

        cfg = EasyDict()
        cfg.NAME = "run"

        def merge(config, new):
            for key, val in new.items():
                if not isinstance(val, dict):
                    config[key] = val
                    continue
                if key not in config:
                    config[key] = EasyDict()
                merge(config[key], val)

        def epoch(model, optimizer, loader, optim):
            for x in loader:
                optimizer.zero_grad()
                model(x).sum().backward()
                nn.utils.clip_grad_norm_(model.parameters(), optim.CLIP)
                optimizer.step()

        merge(cfg, yaml.safe_load(open("train.yaml")))
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        epoch(model, optimizer, torch.utils.data.DataLoader(data, batch_size=8), cfg.OPTIM)
        """
    )
    assert "gradient_clipping=cfg.OPTIM.CLIP" in found.text
    assert not found.todos
