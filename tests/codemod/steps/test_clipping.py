"""Gradient clipping, and the norm that it returns."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_section, convert

PLAIN = """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    model.backward(loss)
    model.step()
"""


def loop(*lines: str, after: tuple[str, ...] = ()) -> str:
    body = "".join(
        f"    {line}\n" for line in ("optimizer.zero_grad()", "loss.backward()", *lines, "optimizer.step()", *after)
    )
    return f"for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n{body}"


def test_a_script_that_does_not_clip_says_so() -> None:
    assert convert().config["gradient_clipping"] == 0.0


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("", "nn.utils.clip_grad_norm_(model.parameters(), 0.5)"),
        ("", "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)"),
        ("", "torch.nn.utils.clip_grad_norm_(parameters=model.parameters(), max_norm=0.5)"),
        ("", "nn.utils.clip_grad_norm_(model.module.parameters(), 0.5, norm_type=2)"),
        ("", "nn.utils.clip_grad_norm(model.parameters(), 0.5)"),
        ("", "nn.utils.clip_grad_norm_(model.parameters(), 0.5, error_if_nonfinite=False)"),
        ("from torch.nn.utils import clip_grad_norm_", "clip_grad_norm_(model.parameters(), 0.5)"),
        ("from torch.nn import utils", "utils.clip_grad_norm_(model.parameters(), 0.5)"),
        ("", "nn.utils.clip_grad_norm_(list(model.parameters()), 0.5)"),
        ("", "nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 0.5)"),
        ("", "nn.utils.clip_grad_norm_(filter(lambda p: p.requires_grad, model.parameters()), 0.5)"),
        ("", "nn.utils.clip_grad_norm_((w for w in model.parameters() if w.requires_grad is True), 0.5)"),
    ],
)
def test_every_spelling_of_the_clip(imports: str, line: str) -> None:
    migrated = check_section("loop", loop(line), PLAIN, imports=imports)
    migrated.said("MG421", line, Kind.CONVERTED)
    assert migrated.config["gradient_clipping"] == 0.5
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_a_limit_from_an_option_follows_it() -> None:
    migrated = check_section("loop", loop("nn.utils.clip_grad_norm_(model.parameters(), args.clip)"), PLAIN)
    assert 'ds_config["gradient_clipping"] = args.clip or 0.0\n' in migrated.section("optimizer")
    assert migrated.config["gradient_clipping"] == 1.0


@pytest.mark.parametrize("test", ["args.clip", "args.clip > 0", "args.clip is not None", "args.clip != 0.0"])
def test_a_guard_that_asks_for_the_limit_goes_with_it(test: str) -> None:
    migrated = check_section(
        "loop", loop(f"if {test}:", "    nn.utils.clip_grad_norm_(model.parameters(), args.clip)"), PLAIN
    )
    assert 'ds_config["gradient_clipping"] = args.clip or 0.0\n' in migrated.section("optimizer")


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("args.clip is not None", True),
        ("args.clip is not None and args.clip > 0", False),
        ("args.clip is not None and args.clip", False),
        ("args.clip > 0", False),
        ("args.clip", False),
    ],
)
def test_a_limit_of_0_is_told_where_the_script_clipped_with_it(test: str, told: bool) -> None:
    line = "nn.utils.clip_grad_norm_(model.parameters(), args.clip)"
    migrated = convert(loop=loop(f"if {test}:", f"    {line}"))
    assert ("a limit of 0" in migrated.said("MG421", line).reason) is told


def test_a_guard_that_asks_for_something_else_becomes_a_condition() -> None:
    migrated = check_section(
        "loop", loop("if args.amp:", "    nn.utils.clip_grad_norm_(model.parameters(), 0.5)"), PLAIN
    )
    assert 'ds_config["gradient_clipping"] = (0.5) if args.amp else 0.0' in migrated.section("optimizer")


def test_a_constant_of_the_module_is_the_limit() -> None:
    migrated = check_section(
        "loop", loop("nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)"), PLAIN, options="GRAD_CLIP = 2.5"
    )
    assert migrated.config["gradient_clipping"] == 2.5


def test_a_parameter_of_the_function_is_followed_to_its_caller() -> None:
    migrated = convert(
        helpers="""
            def train(model, loader, optimizer, max_norm):
                for x, y in loader:
                    loss = F.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
                    optimizer.step()
            """,
        loop="train(model, train_loader, optimizer, args.clip)",
    )
    assert 'ds_config["gradient_clipping"] = args.clip or 0.0' in migrated.section("optimizer")
    assert "clip_grad_norm_" not in migrated.code


# -- the norm is used --------------------------------------------------------------------------------------------------


def test_a_norm_that_is_logged_comes_from_the_engine() -> None:
    migrated = check_section(
        "loop",
        loop("norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)", after=("print(norm.item())",)),
        """
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            model.backward(loss)
            model.step()
            norm = torch.as_tensor(model.get_global_grad_norm(), device=model.device)
            print(norm.item())
        """,
    )
    migrated.said("MG422", "norm = nn.utils", Kind.CONVERTED)
    assert "keep_grad_norm(model)" in migrated.section("optimizer")
    assert migrated.config["zero_optimization"] == {"stage": 2}


@pytest.mark.parametrize("otherwise", ["norm = my_norm(model)", "norm = 0.0"])
def test_another_value_of_the_name_is_not_covered_by_the_norm(otherwise: str) -> None:
    migrated = convert(
        imports="from norms import my_norm",
        loop=f"""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                if args.lr > 1:
                    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                else:
                    {otherwise}
                optimizer.step()
                print(norm)
            """,
    )
    condition = "if args.lr > 1:\n        norm = torch.as_tensor(model.get_global_grad_norm(), device=model.device)"
    assert f"model.step()\n    {condition}" in migrated.section("loop")


def test_a_norm_that_decides_about_the_step_gets_stage_zero() -> None:
    migrated = convert(
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                if torch.isfinite(norm):
                    optimizer.step()
            """
    )
    assert "norm = torch.nn.utils.clip_grad_norm_(" in migrated.section("loop")
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG422", "norm = nn.utils", Kind.KEPT)


def test_a_norm_measured_without_clipping_does_not_clip() -> None:
    migrated = convert(
        loop=loop('norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))', after=("print(norm)",))
    )
    assert migrated.config["gradient_clipping"] == 0.0
    assert "get_global_grad_norm()" in migrated.section("loop") or migrated.config["zero_optimization"] == {"stage": 0}


def test_a_limit_that_nobody_gives_is_said_to_clip_nothing() -> None:
    line = "nn.utils.clip_grad_norm_(model.parameters(), limit)"
    migrated = convert(loop=loop(f"if limit is not None:\n        {line}").replace("for ", "limit = None\nfor ", 1))
    assert migrated.config["gradient_clipping"] == 0.0
    assert "no limit is given" in migrated.said("MG421", line, Kind.CONVERTED).reason


# -- what the engine cannot do -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nn.utils.clip_grad_value_(model.parameters(), 0.1)", "MG423"),
        ("nn.utils.clip_grad_norm_(model.module.head.parameters(), 0.1)", "MG423"),
        ('nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type="inf")', "MG423"),
        ("nn.utils.clip_grad_norm_(model.parameters(), 0.1, 1.0)", "MG423"),
        ("nn.utils.clip_grad_norm_(model.parameters(), 0.1, error_if_nonfinite=True)", "MG423"),
    ],
)
def test_other_clipping_stays_at_stage_zero(line: str, code: str) -> None:
    migrated = convert(loop=loop(line))
    assert line in migrated.section("loop")
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert migrated.config["gradient_clipping"] == 0.0
    about_norm = "another norm" in migrated.said(code, line, Kind.KEPT).message
    assert about_norm is ("inf" in line or "1.0" in line)


def test_other_clipping_is_marked_where_another_stage_is_asked_for() -> None:
    line = "nn.utils.clip_grad_value_(model.parameters(), 0.1)"
    migrated = convert(loop=loop(line), to={"zero_stage": 2})
    migrated.said("MG423", line, Kind.TODO)
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_a_helper_that_clips_elsewhere_stays_at_stage_zero() -> None:
    migrated = convert(imports="from utils import clip_gradients", loop=loop("clip_gradients(model, 3.0)"))
    assert "clip_gradients(model, 3.0)" in migrated.section("loop")
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_clipping_every_micro_batch_is_left_to_the_person() -> None:
    migrated = convert(
        loop="""
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / args.accum).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    optimizer.zero_grad()
            """
    )
    migrated.said("MG424", "nn.utils.clip_grad_norm_", Kind.TODO)


def test_clipping_at_the_end_of_a_window_is_the_engines() -> None:
    migrated = check_section(
        "loop",
        """
        for i, (x, y) in enumerate(train_loader):
            (F.cross_entropy(model(x), y) / args.accum).backward()
            if (i + 1) % args.accum == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        for i, (x, y) in enumerate(train_loader):
            model.backward(F.cross_entropy(model(x), y) / args.accum)
            if (i + 1) % args.accum == 0:
                model.step()
        """,
    )
    assert migrated.config["gradient_clipping"] == 0.5


def test_two_limits_are_left_to_the_person() -> None:
    migrated = convert(
        loop=loop(
            "if args.amp:",
            "    nn.utils.clip_grad_norm_(model.parameters(), 0.5)",
            "else:",
            "    nn.utils.clip_grad_norm_(model.parameters(), 5.0)",
        )
    )
    codes = {(c.code, c.kind) for c in migrated.changes}
    assert ("MG424", Kind.TODO) in codes or migrated.config["zero_optimization"] == {"stage": 0}


def test_clips_that_stay_are_not_the_engines() -> None:
    migrated = convert(
        helpers="def other(model, loss, optimizer):\n    loss.backward()\n"
        "    nn.utils.clip_grad_value_(model.parameters(), 0.5)\n    optimizer.step()\n\n\n",
        loop="""
            for x, y in train_loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                if args.amp:
                    other(model, loss, optimizer)
                else:
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.module.head.parameters(), 2.0)
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
            """,
    )
    assert migrated.config["gradient_clipping"] == 0.0
    migrated.said("MG423", "clip_grad_norm_(model.parameters(), 1.0)", Kind.KEPT)
    migrated.silent("MG424")
