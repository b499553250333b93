"""Gradients that the script looks at before the step: unscaled, as apex amp left them."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

_CLIP = "nn.utils.clip_grad_value_(model.parameters(), 0.5)\noptimizer.step()\n"
_SCALED = "with amp.scale_loss(loss, optimizer) as scaled_loss:\n    scaled_loss.backward()\n"


def apex(loop: str, level: str = "O1", **options: Any) -> Migrated:
    """A script under apex amp whose loop is this."""
    return convert(
        imports="from apex import amp",
        wrap="model = Net().cuda()",
        optimizer=(
            "optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)\n"
            f'model, optimizer = amp.initialize(model, optimizer, opt_level="{level}")\n'
            "model = DDP(model)"
        ),
        loop="for i, (x, y) in enumerate(train_loader):\n    loss = F.cross_entropy(model(x), y)\n"
        + indent(loop, "    "),
        to=options,
    )


@pytest.mark.parametrize(
    "between",
    [
        "nn.utils.clip_grad_value_(amp.master_params(optimizer), 0.5)",
        "nn.utils.clip_grad_norm_(model.module.fc.parameters(), 0.5)",
        "print(model.module.fc.weight.grad.norm())",
    ],
)
def test_gradients_are_unscaled_where_apex_did(between: str) -> None:
    migrated = apex(f"optimizer.zero_grad()\n{_SCALED}{between}\noptimizer.step()\n")
    migrated.said("MG426", "with amp.scale_loss", Kind.CONVERTED)
    assert (
        "    model.amp_scaler.engine_backward(model, loss)\n"
        "    model.amp_scaler.unscale_(model.optimizer)\n"
        f"    {between}\n"
        "    model.amp_scaler.engine_step(model)\n"
    ) in migrated.section("loop")


def test_a_choice_between_amp_and_none_is_unscaled_behind_both() -> None:
    choice = f"if args.amp:\n{indent(_SCALED, '    ')}else:\n    loss.backward()\n"
    migrated = apex(f"optimizer.zero_grad()\n{choice}{_CLIP}")
    assert migrated.section("loop").count("unscale_(") == 1
    assert "engine_backward(model, loss)\n    model.amp_scaler.unscale_(model.optimizer)\n" in migrated.section("loop")


def test_a_window_is_unscaled_once_at_its_end() -> None:
    gate = f"if (i + 1) % 4 == 0:\n{indent(_CLIP + 'optimizer.zero_grad()', '    ')}\n"
    migrated = apex(f"loss = loss / 4\n{_SCALED}{gate}")
    assert (
        "    model.amp_scaler.engine_backward(model, loss)\n"
        "    if (i + 1) % 4 == 0:\n"
        "        model.amp_scaler.unscale_(model.optimizer)\n"
    ) in migrated.section("loop")


def test_what_looks_within_a_window_is_marked() -> None:
    gate = "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n"
    look = "print(model.module.fc.weight.grad.norm())\n"
    migrated = apex(f"loss = loss / 4\n{_SCALED}{look}{gate}")
    change = migrated.said("MG426", "scaled_loss.backward()", Kind.TODO)
    assert "divide what is read of it by model.amp_scaler.get_scale()" in change.message


def test_two_backwards_of_one_step_are_marked() -> None:
    migrated = apex(f"optimizer.zero_grad()\n{_SCALED}{_SCALED.replace('(loss,', '(2 * loss,')}{_CLIP}")
    change = migrated.said("MG426", "scaled_loss.backward()", Kind.TODO)
    assert "model.amp_scaler.unscale_(model.optimizer) once per step" in change.message


def test_the_call_that_is_asked_for_does_not_stop_an_engine_that_clips() -> None:
    clip = "nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\noptimizer.step()\n"
    look = "print(model.module.fc.weight.grad.norm())\n"
    migrated = apex(f"optimizer.zero_grad()\n{_SCALED}{_SCALED.replace('(loss,', '(2 * loss,')}{look}{clip}")
    migrated.said("MG426", "scaled_loss.backward()", Kind.TODO)
    assert migrated.config["gradient_clipping"] == 1.0
    assert "engine_is_stepping = False" in migrated.code


def test_an_engine_that_clips_as_well_asks_without_effect() -> None:
    migrated = apex(
        f"optimizer.zero_grad()\n{_SCALED}print(model.module.fc.weight.grad.norm())\n"
        "nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\noptimizer.step()\n"
    )
    assert migrated.config["gradient_clipping"] == 1.0
    assert "engine_is_stepping = False" in migrated.code


def test_nothing_is_unscaled_where_nothing_looks() -> None:
    apex(f"optimizer.zero_grad()\n{_SCALED}optimizer.step()\n").silent("MG426")


def test_the_scale_of_the_fp16_section_is_marked() -> None:
    loop = f"optimizer.zero_grad()\n{_SCALED}{_CLIP}"
    assert (
        "loss scale of the fp16 section" in apex(loop, "O2").said("MG426", "scaled_loss.backward()", Kind.TODO).message
    )
    asked = apex(loop, precision="fp16")
    assert "model.optimizer.loss_scale" in asked.said("MG426", "scaled_loss.backward()", Kind.TODO).message
