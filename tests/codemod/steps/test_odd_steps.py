"""Steps that follow each other, clips in an odd order, and a scale that the script sets itself."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.loop_scripts import loop

AGAIN = "takes the gradients of the step above it once more"


def is_again(migrated: Migrated) -> bool:
    return any(c.code == "MG407" and AGAIN in c.message for c in migrated.changes)


@pytest.mark.parametrize(
    "text",
    [
        loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "optimizer.step()"),
        loop("loss.backward()", "optimizer.step()", "if args.amp:", "    optimizer.step()", "optimizer.zero_grad()"),
        loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()") + "optimizer.step()\n",
    ],
)
def test_a_second_step_on_the_same_gradients_is_marked(text: str) -> None:
    assert is_again(convert(loop=text))


@pytest.mark.parametrize(
    "text",
    [
        loop(
            "optimizer.zero_grad()",
            "loss.backward()",
            "if args.amp:",
            "    optimizer.step()",
            "else:",
            "    optimizer.step()",
        ),
        loop(
            "loss.backward()",
            "if args.amp:",
            "    optimizer.step()",
            "if not args.amp:",
            "    optimizer.step()",
            "optimizer.zero_grad()",
        ),
        loop("loss.backward()", "optimizer.step()", "optimizer.zero_grad()")
        + loop("loss.backward()", "optimizer.step()", "optimizer.zero_grad()"),
        loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()")
        + loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()"),
        "seen = 0\n"
        + loop(
            "if seen % 4 == 0:",
            "    optimizer.zero_grad()",
            "loss.backward()",
            "seen += 1",
            "if seen % 4 == 0:",
            "    optimizer.step()",
        )
        + "if seen % 4:\n    optimizer.step()\n",
        loop(
            "optimizer.zero_grad()",
            "loss.backward()",
            "if args.amp:",
            "    optimizer.step()",
            "    continue",
            "optimizer.step()",
        ),
    ],
)
def test_steps_with_gradients_of_their_own_are_not(text: str) -> None:
    assert not is_again(convert(loop=text))


NORM = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
LATER = [
    "nn.utils.clip_grad_value_(model.parameters(), 0.5)",
    "model.module.head.weight.grad.add_(1e-4)",
    "shake(model)",
]
SHAKE = """
def shake(net):
    for p in net.parameters():
        p.grad += 0.1
"""


@pytest.mark.parametrize("line", LATER)
def test_a_clip_before_other_work_on_the_gradients_stays_where_it_is(line: str) -> None:
    migrated = convert(
        helpers=SHAKE, loop=loop("optimizer.zero_grad()", "loss.backward()", NORM, line, "optimizer.step()")
    )
    assert NORM in migrated.section("loop")
    assert migrated.config["gradient_clipping"] == 0.0
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG423", NORM, Kind.KEPT)


@pytest.mark.parametrize("line", LATER)
def test_a_clip_behind_other_work_on_the_gradients_is_the_engines(line: str) -> None:
    migrated = convert(
        helpers=SHAKE, loop=loop("optimizer.zero_grad()", "loss.backward()", line, NORM, "optimizer.step()")
    )
    assert NORM not in migrated.section("loop")
    assert migrated.config["gradient_clipping"] == 1.0


def test_a_scale_that_the_script_sets_is_marked() -> None:
    migrated = convert(
        optimizer="""
            optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
            scaler = torch.amp.GradScaler("cuda")
            """,
        loop="""
            for x, y in train_loader:
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update(512.0)
            """,
    )
    assert "load_state_dict" in migrated.said("MG303", "scaler.update(512.0)", Kind.TODO).message
