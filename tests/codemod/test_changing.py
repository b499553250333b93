"""What changes while the script trains is not read once, when the config is filled."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), {limit})"


def _loop(limit: str, then: str = "pass", before: str = "step = 0\nclip = 5.0") -> str:
    return f"""
{before}
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    {CLIP.format(limit=limit)}
    optimizer.step()
    {then}
"""


@pytest.mark.parametrize(
    ("limit", "then"),
    [
        ("1.0 if step < 20 else 5.0", "step += 1"),
        ("clip", "clip *= 0.99"),
        ("args.lr", "args.lr *= 0.9"),
        ("args.lr", "args.lr = 0.9 * args.lr"),
        ('limits["norm"]', 'limits["norm"] *= 0.9'),
        ("max(limits)", "limits.append(loss.item())"),
        ('0.1 / optimizer.param_groups[0]["lr"]', 'optimizer.param_groups[0]["lr"] *= 0.9'),
    ],
)
def test_a_limit_that_changes_in_the_loop_stays_in_the_script(limit: str, then: str) -> None:
    limits = 'limits = {"norm": 1.0}' if "norm" in limit else "limits = [1.0]"
    migrated = convert(loop=_loop(limit, then, f"step = 0\nclip = 5.0\n{limits}"))
    migrated.said("MG424", "clip_grad_norm_", Kind.KEPT)
    assert migrated.config["gradient_clipping"] == 0.0
    assert 'ds_config["gradient_clipping"]' not in migrated.code
    assert "clip_grad_norm_" in migrated.section("loop")


def test_a_clip_that_begins_late_stays_in_the_script() -> None:
    gated = _loop("1.0", "step += 1").replace("    torch.nn", "    if step > 20:\n        torch.nn")
    assert convert(loop=gated).config["gradient_clipping"] == 0.0


def test_a_counter_that_decides_nothing_here_leaves_the_limit_to_the_config() -> None:
    migrated = convert(loop=_loop("args.lr", "step += 1"))
    migrated.said("MG421", "clip_grad_norm_", Kind.CONVERTED)
    assert '"gradient_clipping"] = args.lr' in migrated.code


def test_a_setting_that_is_changed_before_the_engine_is_carried() -> None:
    migrated = convert(
        loop=_loop("args.lr"), optimizer="args.lr *= 2\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    )
    migrated.said("MG421", "clip_grad_norm_", Kind.CONVERTED)


@pytest.mark.parametrize(
    ("enabled", "then"),
    [("step > 10", "step += 1"), ("args.amp", "args.amp = False"), ("args.epochs < 9", "args.epochs += 1")],
)
def test_autocast_that_is_switched_while_training_is_marked(enabled: str, then: str) -> None:
    migrated = convert(
        loop=f"""
        step = 0
        for x, y in train_loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled={enabled}):
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            {then}
        """
    )
    migrated.said("MG307", "torch.autocast", Kind.TODO)


def test_a_scaler_that_is_updated_still_says_whether_autocast_is_on() -> None:
    migrated = convert(
        loop="""
        scaler = torch.amp.GradScaler("cuda") if args.amp else None
        for x, y in train_loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", enabled=scaler is not None):
                loss = F.cross_entropy(model(x), y)
            if scaler is None:
                loss.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        """
    )
    migrated.silent("MG307")
