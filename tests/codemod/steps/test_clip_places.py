"""Clips in odd places: behind the step, of each parameter, through another name, before a part is cleared."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 0.5)"


def loop(*lines: str, after: tuple[str, ...] = ()) -> str:
    body = "".join(
        f"    {line}\n" for line in ("optimizer.zero_grad()", "loss.backward()", *lines, "optimizer.step()", *after)
    )
    return f"for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n{body}"


@pytest.mark.parametrize(
    ("helpers", "call"),
    [
        ("clip = nn.utils.clip_grad_norm_", "clip(model.parameters(), 0.5)"),
        ("import functools as f\nclip = f.partial(nn.utils.clip_grad_norm_, max_norm=0.5)", "clip(model.parameters())"),
        ("CLIPS = {'norm': torch.nn.utils.clip_grad_norm_}", "CLIPS['norm'](model.parameters(), 0.5)"),
        ("def clip(model, kind=nn.utils.clip_grad_norm_):\n    kind(model.parameters(), 0.5)", "clip(model)"),
        ("class Clips:\n    of = staticmethod(nn.utils.clip_grad_value_)", "Clips.of(model.parameters(), 0.5)"),
        ("clip = getattr(nn.utils, 'clip_grad_norm_')", "clip(model.parameters(), 0.5)"),
        ("clip = getattr(torch.nn.utils, os.environ['CLIP'])", "clip(model.parameters(), 0.5)"),
        ("clip = nn.utils.clip_grad_norm_ if os.environ.get('A') else print", "clip(model.parameters(), 0.5)"),
    ],
)  # fmt: skip
def test_a_clip_function_that_is_a_value_works_at_stage_zero(helpers: str, call: str) -> None:
    migrated = convert(helpers=helpers, loop=loop(call))
    assert call in migrated.section("loop")
    assert migrated.config["gradient_clipping"] == 0.0
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert [c for c in migrated.changes if c.code == "MG423" and c.kind is Kind.KEPT], migrated.told()


def test_a_clip_beside_a_clip_function_that_is_a_value_stays() -> None:
    migrated = convert(helpers="clip = nn.utils.clip_grad_value_", loop=loop(CLIP, "clip(model.parameters(), 0.1)"))
    assert CLIP in migrated.section("loop")
    assert migrated.config["gradient_clipping"] == 0.0


@pytest.mark.parametrize("line", ["print(args.clip_grad_norm_)", "dict(clip_grad_norm_=1)", "getattr(args, 'clip')"])
def test_other_names_are_no_clip_functions(line: str) -> None:
    migrated = convert(imports="from torch.nn.utils import clip_grad_norm_", loop=loop(CLIP, after=(line,)))
    assert migrated.config["gradient_clipping"] == 0.5
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_a_clip_of_each_parameter_is_not_the_clip_of_all() -> None:
    migrated = convert(loop=loop("for p in model.parameters():", "    nn.utils.clip_grad_norm_(p, 0.5)"))
    assert "nn.utils.clip_grad_norm_(p, 0.5)" in migrated.section("loop")
    assert migrated.config["gradient_clipping"] == 0.0
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_a_clip_of_those_that_have_a_gradient_is_the_clip_of_all() -> None:
    call = "nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad and p.grad is not None], 0.5)"
    assert convert(loop=loop(call)).config["gradient_clipping"] == 0.5


@pytest.mark.parametrize(
    "given",
    [
        "[p for p in model.parameters() if p.requires_grad and p.dim() > 1]",
        "(p for p in model.parameters() if p.requires_grad and not getattr(p, 'no_clip', False))",
        "[p for p in model.parameters() if p.requires_grad if p.ndim > 1]",
        "[p for p in model.parameters() if not p.requires_grad]",
        "filter(lambda p: p.requires_grad and p.ndim > 1, model.parameters())",
        "[p for n, p in model.named_parameters() if p.requires_grad and 'norm' not in n]",
    ],
)
def test_a_clip_of_those_that_pass_a_further_test_is_not_the_clip_of_all(given: str) -> None:
    by_name = (f"chosen = list({given})", "nn.utils.clip_grad_norm_(chosen, 0.5)")
    for lines in ((f"nn.utils.clip_grad_norm_({given}, 0.5)",), by_name):
        migrated = convert(loop=loop(*lines))
        migrated.said("MG423", lines[-1], Kind.KEPT)
        assert lines[-1] in migrated.section("loop")
        assert migrated.config["gradient_clipping"] == 0.0
        assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize("call", [CLIP, "clip(model)"])
def test_a_clip_behind_the_step_clips_no_step(call: str) -> None:
    migrated = convert(helpers=f"def clip(model):\n    {CLIP}", loop=loop(after=(call,)))
    assert call in migrated.section("loop")
    assert migrated.config["gradient_clipping"] == 0.0
    migrated.said("MG423", CLIP, Kind.KEPT)


def test_a_norm_behind_the_step_is_marked() -> None:
    migrated = convert(loop=loop(after=(f"norm = {CLIP}", "print(norm)")))
    migrated.said("MG410", CLIP, Kind.TODO)
    assert migrated.config["gradient_clipping"] == 0.0


def test_a_clip_behind_the_step_of_a_window_acts_on_the_next_at_stage_zero() -> None:
    migrated = convert(
        loop=f"""
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / args.accum).backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    optimizer.zero_grad()
                {CLIP}
            """
    )
    assert CLIP in migrated.section("loop")
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG423", CLIP, Kind.KEPT)


def test_a_step_of_leftovers_has_its_clip() -> None:
    migrated = convert(
        loop=f"""
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / args.accum).backward()
                if (i + 1) % args.accum == 0:
                    {CLIP}
                    optimizer.step()
                    optimizer.zero_grad()
            if (i + 1) % args.accum:
                {CLIP}
                optimizer.step()
                optimizer.zero_grad()
            """
    )
    assert migrated.config["gradient_clipping"] == 0.5
    assert "clip_grad_norm_" not in migrated.section("loop")


def test_a_clip_of_the_other_branch_is_not_behind_the_step() -> None:
    migrated = convert(
        loop=f"""
            for x, y in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                if not args.amp:
                    optimizer.step()
                else:
                    {CLIP}
                    optimizer.step()
            """
    )
    assert not [c for c in migrated.changes if "behind the step" in c.message], migrated.told()


@pytest.mark.parametrize("call", ["model.module.head.zero_grad()", "keep(model)", "cancel_gradients(model)"])
@pytest.mark.parametrize("clip", [CLIP, "pass"])
def test_a_part_that_is_cleared_before_the_step_is_so_at_stage_zero(call: str, clip: str) -> None:
    migrated = convert(
        imports="from tricks import cancel_gradients",
        helpers="def keep(model):\n    model.module.head.zero_grad()",
        loop=loop(clip, call),
    )
    assert f"{clip}\n    {call}\n    model.step()" in migrated.section("loop")
    assert migrated.config["gradient_clipping"] == 0.0
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_a_part_that_is_cleared_behind_the_step_needs_nothing() -> None:
    migrated = convert(loop=loop(CLIP, after=("model.module.head.zero_grad()",)))
    assert migrated.config["gradient_clipping"] == 0.5
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_a_loop_that_does_not_clip_beside_one_that_does_is_marked() -> None:
    first = loop().replace("optimizer.step()", "optimizer.step()  # first")
    migrated = convert(helpers=f"def clip(model):\n    {CLIP}", loop=first + loop("clip(model)"))
    assert "did not clip" in migrated.said("MG424", "optimizer.step()  # first", Kind.TODO).message


def test_steps_in_a_loop_of_their_own_are_clipped_before_it() -> None:
    lines = loop(CLIP).replace("    optimizer.step()", "    for each in [optimizer]:\n        each.step()")
    migrated = convert(loop=lines)
    assert migrated.config["gradient_clipping"] == 0.5
    assert not [c for c in migrated.changes if "did not clip" in c.message], migrated.told()


def test_a_function_that_is_called_twice_clips_its_own_step() -> None:
    epoch = loop(CLIP).replace("\n", "\n    ").rstrip()
    migrated = convert(
        helpers=f"def epoch(model, optimizer, train_loader):\n    {epoch}",
        loop="epoch(model, optimizer, train_loader)\nepoch(model, optimizer, train_loader)",
    )
    assert migrated.config["gradient_clipping"] == 0.5
    assert "clip_grad_norm_" not in migrated.section("helpers")
