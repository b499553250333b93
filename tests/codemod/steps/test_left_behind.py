"""A zero_grad that throws away what another backward has left goes to the engine; it is never taken out."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

STEP = """
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""
PROBE = "F.cross_entropy(model(x), y).backward()"


def _loop(*before: str, behind: tuple[str, ...] = ()) -> str:
    lines = [f"    {line}\n" for line in before]
    return (
        "for x, y in train_loader:\n" + "".join(lines) + STEP.lstrip("\n") + "".join(f"    {line}\n" for line in behind)
    )


ATTACK = _loop(
    "x.requires_grad_(True)",
    PROBE,
    "x = (x + 0.1 * x.grad.sign()).detach()",
)
SEVERAL_ATTACKS = _loop("for _ in range(3):", f"    {PROBE}", "    x = x + 0.1")
PROBE_SOMETIMES = _loop("if args.epochs > 3:", f"    {PROBE}")
BEHIND_THE_STEP = _loop(behind=("model(x).mean().backward()",))
WARM_UP = f"x, y = next(iter(train_loader))\n{PROBE}\n{_loop()}"
BEHIND_AN_EPOCH = f"""
for epoch in range(args.epochs):
{"".join(f"    {line}" for line in _loop().splitlines(keepends=True))}
    x, y = next(iter(train_loader))
    {PROBE}
"""


@pytest.mark.parametrize("text", [ATTACK, SEVERAL_ATTACKS, PROBE_SOMETIMES, BEHIND_THE_STEP, WARM_UP, BEHIND_AN_EPOCH])
@pytest.mark.parametrize("zero", ["optimizer.zero_grad()", "model.zero_grad()"])
def test_a_zero_grad_behind_another_backward_is_handed_to_the_engine(text: str, zero: str) -> None:
    migrated = convert(loop=text.replace("optimizer.zero_grad()", zero))
    migrated.said("MG408", zero, Kind.CONVERTED)
    migrated.silent("MG403")
    assert "drop_gradients(model)" in migrated.section("loop")


HELPER = """
def attack(net, x, y):
    x = x.clone().requires_grad_(True)
    F.cross_entropy(net(x), y).backward()
    return (x + 0.1 * x.grad.sign()).detach()


"""


def test_a_backward_in_a_helper_counts_where_the_helper_is_called() -> None:
    migrated = convert(helpers=HELPER, loop=_loop("x = attack(model, x, y)"))
    migrated.said("MG408", "optimizer.zero_grad()", Kind.CONVERTED)


STEPS_ITSELF = """
def train_step(net, optimizer, x, y):
    F.cross_entropy(net(x), y).backward()
    optimizer.step()


"""


def test_a_helper_that_steps_too_leaves_nothing() -> None:
    convert(helpers=STEPS_ITSELF, loop=_loop("train_step(model, optimizer, x, y)")).said(
        "MG403", "optimizer.zero_grad()", Kind.CONVERTED
    )


TWINS = """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    if args.epochs > 3:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    else:
        optimizer.zero_grad()
        (2 * loss).backward()
        optimizer.step()
"""
SKIPPED = """
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    if not torch.isfinite(loss):
        continue
    loss.backward()
    optimizer.step()
"""
TWO_STEPS = """
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    F.cross_entropy(model(x + 1), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize("text", [TWINS, SKIPPED, TWO_STEPS])
def test_a_zero_grad_that_finds_nothing_goes_as_before(text: str) -> None:
    migrated = convert(loop=text)
    migrated.said("MG403", "optimizer.zero_grad()", Kind.CONVERTED)
    migrated.silent("MG408")
