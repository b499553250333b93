"""What ZeRO stage 3 adds; nothing of it at the other stages."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_section, convert

EMA = """
@torch.no_grad()
def update_ema(ema, model, decay=0.99):
    for a, b in zip(ema.parameters(), model.parameters()):
        a.lerp_(b, 1 - decay)
"""
WITH_EMA = {
    "helpers": EMA,
    "wrap": """
        net = Net().cuda()
        ema = copy.deepcopy(net)
        model = DDP(net)
        """,
}


def loop(*after: str) -> str:
    lines = ("optimizer.zero_grad()", "loss.backward()", "optimizer.step()", *after)
    return "for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n" + "".join(f"    {a}\n" for a in lines)


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_averages_need_nothing_at_other_stages(stage: int) -> None:
    migrated = convert(**WITH_EMA, loop=loop("update_ema(ema, model.module)"), to={"zero_stage": stage})
    assert "GatheredParameters" not in migrated.code
    assert migrated.section("loop").endswith("    model.step()\n    update_ema(ema, model.module)\n")


def test_parameters_are_gathered_around_an_average() -> None:
    migrated = convert(**WITH_EMA, loop=loop("update_ema(ema, model.module)"), to={"zero_stage": 3})
    assert migrated.section("loop").endswith(
        "    with deepspeed.zero.GatheredParameters(list(model.module.parameters())):\n"
        "        update_ema(ema, model.module)\n"
    )
    migrated.said("MG707", "    update_ema(ema, model.module)", Kind.CONVERTED)


def test_parameters_are_gathered_around_a_loop_that_reads_them() -> None:
    migrated = convert(
        loop=loop("for name, p in model.named_parameters():", "    print(name, p.norm())"), to={"zero_stage": 3}
    )
    assert (
        "    with deepspeed.zero.GatheredParameters(list(model.module.parameters())):\n"
        "        for name, p in model.named_parameters():\n            print(name, p.norm())\n"
    ) in migrated.section("loop")


@pytest.mark.parametrize(
    ("made", "guard"),
    [
        ("", "if rank == 0:"),
        ("keeps = rank == 0", "if keeps:"),
        ("skips = rank != 0", "if not skips:"),
    ],
)
def test_a_gather_under_a_rank_guard_is_left_to_the_person(made: str, guard: str) -> None:
    text = f"{made}\n{loop(guard, '    update_ema(ema, model.module)')}"
    convert(**WITH_EMA, loop=text, to={"zero_stage": 3}).said("MG705", "    update_ema(ema, model.module)", Kind.TODO)


def test_a_copy_behind_the_engine_is_left_to_the_person() -> None:
    migrated = convert(end="best = copy.deepcopy(model.module)\nprint(best)", to={"zero_stage": 3})
    migrated.said("MG705", "copy.deepcopy(model.module)", Kind.TODO)


def test_a_copy_behind_the_engine_is_fine_at_other_stages() -> None:
    convert(end="best = copy.deepcopy(model.module)\nprint(best)\n", to={"zero_stage": 2}).silent("MG705")


@pytest.mark.parametrize("arguments", ["", 'mode="max-autotune"', "dynamic=True, fullgraph=False"])
def test_a_model_is_compiled_in_place(arguments: str) -> None:
    given = f", {arguments}" if arguments else ""
    migrated = check_section(
        "wrap",
        f"model = Net().cuda()\nmodel = torch.compile(model{given})\nmodel = DDP(model)",
        f"model = Net().cuda()\nmodel.compile({arguments})",
        to={"zero_stage": 3},
    )
    migrated.said("MG708", "torch.compile(", Kind.CONVERTED)


@pytest.mark.parametrize(
    "wrap", ["model = DDP(torch.compile(Net().cuda()))", "model = torch.compile(Net().cuda())\nmodel = DDP(model)"]
)
def test_a_model_that_is_compiled_where_it_is_made_is_not_left_as_it_is(wrap: str) -> None:
    migrated = convert(wrap=wrap, to={"zero_stage": 3})
    assert "torch.compile(" not in migrated.section("wrap") or migrated.said("MG708", "torch.compile(", Kind.TODO)


def test_a_compiled_model_stays_at_other_stages() -> None:
    text = "model = Net().cuda()\nmodel = torch.compile(model)\n"
    check_section("wrap", text + "model = DDP(model)", text, to={"zero_stage": 2}).silent("MG708")


def test_parameters_are_gathered_where_a_helper_averages_the_plain_module() -> None:
    helpers = """
        @torch.no_grad()
        def momentum(slow, fast, m):
            for a, b in zip(slow.parameters(), fast.parameters()):
                a.data.mul_(m).add_(b.data, alpha=1 - m)
        """
    parts = {"wrap": WITH_EMA["wrap"], "helpers": helpers}
    migrated = convert(**parts, loop=loop("momentum(ema, model.module, 0.99)"), to={"zero_stage": 3})
    assert migrated.section("loop").endswith(
        "    with deepspeed.zero.GatheredParameters(list(model.module.parameters())):\n"
        "        momentum(ema, model.module, 0.99)\n"
    )


def test_a_helper_that_counts_parameters_needs_no_values() -> None:
    helpers = "def count(net):\n    return sum(1 for p in net.parameters() if p.requires_grad)\n"
    migrated = convert(helpers=helpers, end="print(count(model.module))", to={"zero_stage": 3})
    assert "GatheredParameters" not in migrated.code
