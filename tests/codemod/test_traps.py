"""Conversions that train something else without a word: one test for each trap and each fact that a conversion meets.

Trap numbers are those of ``ddp-idioms``, fact numbers those of ``engine-semantics``, as sources of ideas name them.
Each test fails if the trap were reintroduced, whatever else the conversion looks like.
"""

from __future__ import annotations

import ast
import re

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_refused, convert, script
from tests.codemod.trap_scripts import AMP, BF16, RESUME, SAVING, SCHEDULER, WINDOWS, calls, guards, plain

# -- traps -------------------------------------------------------------------------------------------------------------


def test_trap_1_saving_is_not_left_under_a_rank_guard() -> None:
    migrated = convert(loop=SAVING, resume=RESUME)
    assert guards(migrated, "request_checkpoint") == ["rank == 0"]
    assert guards(migrated, "save_requested_checkpoints") == []
    assert len(calls(migrated, "save_requested_checkpoints")) == 1
    assert "    save_requested_checkpoints(model)\n" in migrated.section("loop")


def test_trap_2_a_window_is_neither_divided_twice_nor_stepped_too_often() -> None:
    migrated = convert(loop=WINDOWS, resume=SCHEDULER)
    code = migrated.section("loop")
    assert migrated.config["gradient_accumulation_steps"] == 1
    assert migrated.config["managed_gradient_accumulation"] is False
    assert code.count("/ args.accum") == 1
    assert (
        "        if (i + 1) % args.accum == 0 or i + 1 == len(train_loader):\n"
        "            model.step()\n            scheduler.step()\n"
        '            print("lr", scheduler.get_last_lr())\n'
    ) in code


def test_trap_3_the_scheduler_is_not_handed_over() -> None:
    migrated = convert(loop=SAVING + "    scheduler.step()\n", resume=SCHEDULER)
    (initialize,) = calls(migrated, "initialize")
    assert {keyword.arg for keyword in initialize.keywords} == {"model", "optimizer", "config"}
    assert "scheduler" not in migrated.config
    assert migrated.section("loop").endswith("    scheduler.step()\n")
    assert ast.unparse(initialize.keywords[1].value) == "optimizer"


def test_trap_4_the_scheduler_is_built_on_the_client_optimizer() -> None:
    migrated = convert(loop=plain(after=("scheduler.step()",)), resume=SCHEDULER)
    assert SCHEDULER in migrated.code
    assigned = [
        ast.unparse(node.targets[0])
        for node in ast.walk(ast.parse(migrated.code))
        if isinstance(node, ast.Assign) and "deepspeed.initialize(" in ast.unparse(node.value)
    ]
    assert assigned == ["model"]  # the optimizer that initialize returns is not taken


@pytest.mark.parametrize("version", ["0.9.0", "0.19.2", "0.19.3", "0.19.8"])
def test_trap_5_gradient_clipping_is_always_said(version: str) -> None:
    assert convert(to={"target_version": version}).config["gradient_clipping"] == 0.0


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_trap_6_no_clip_is_left_that_would_see_no_gradients(stage: int) -> None:
    migrated = convert(
        loop=plain(
            "norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)", after=("print(norm.item(), loss.item())",)
        ),
        to={"zero_stage": stage},
    )
    assert "clip_grad_norm_" not in migrated.section("loop")
    code = migrated.section("loop")
    assert code.index("model.step()") < code.index("get_global_grad_norm()") < code.index("print(norm.item()")
    assert "keep_grad_norm(model)" in migrated.section("optimizer")
    assert migrated.config["gradient_clipping"] == 1.0


def test_trap_7_the_optimizer_is_the_scripts_own() -> None:
    migrated = convert(optimizer="optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)")
    assert "optimizer" not in migrated.config
    assert "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)\n" in migrated.section(
        "optimizer"
    )


@pytest.mark.parametrize(
    ("expression", "parameters"),
    [
        ("torch.optim.Adam(model.parameters())", {"lr": 1e-3, "weight_decay": 0.0, "adam_w_mode": False}),
        ("torch.optim.AdamW(model.parameters())", {"lr": 1e-3, "weight_decay": 0.01}),
    ],
)
def test_trap_7_adam_in_a_config_means_what_it_meant(expression: str, parameters: dict[str, object]) -> None:
    migrated = convert(optimizer=f"optimizer = {expression}", to={"optimizer": "config"})
    assert migrated.config["optimizer"]["params"] == parameters


@pytest.mark.parametrize("name", ["SGD", "RMSprop", "NAdam", "Adagrad"])
def test_trap_8_optimizers_that_zero_does_not_list_are_allowed(name: str) -> None:
    migrated = convert(optimizer=f"optimizer = torch.optim.{name}(model.parameters(), lr=0.1)")
    assert migrated.config.get("zero_allow_untested_optimizer", name == "Adagrad") is True


@pytest.mark.parametrize("loop", [plain(), WINDOWS, AMP, BF16], ids=["plain", "windows", "amp", "bf16"])
def test_trap_9_backward_and_step_are_the_engines(loop: str) -> None:
    migrated = convert(loop=loop, resume=SCHEDULER)
    code = migrated.section("loop")
    assert re.search(r"(loss|scale\(loss\))\.backward\(", code) is None
    assert "optimizer.step(" not in code
    assert re.search(r"(model\.backward\(|\.engine_backward\(model, )loss\)", code)


def test_trap_10_an_unwrap_helper_finds_the_module_of_the_engine() -> None:
    migrated = convert(
        helpers="""
            def unwrap(model):
                if isinstance(model, (DDP, nn.DataParallel)):
                    return model.module
                return model
            """,
        end='torch.save(unwrap(model).state_dict(), "weights.pt")',
    )
    assert "isinstance(model, (deepspeed.DeepSpeedEngine, nn.DataParallel))" in migrated.section("helpers")
    assert "DistributedDataParallel" not in migrated.code


def test_trap_11_the_engine_is_made_on_both_branches() -> None:
    migrated = convert(
        wrap="""
            model = Net().cuda()
            if args.distributed:
                model = DDP(model)
            raw = model.module if args.distributed else model
            """,
        end='torch.save((model.module if args.distributed else model).state_dict(), "weights.pt")\nprint(raw)',
    )
    assert guards(migrated, "deepspeed.initialize") == []
    assert "if args.distributed" not in migrated.section("wrap")
    assert migrated.section("end").startswith("torch.save(model.module.state_dict(),")


def test_trap_11_an_engine_at_the_wrap_is_taken_out_of_the_branch() -> None:
    migrated = convert(
        wrap="""
            model = Net().cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.distributed:
                model = DDP(model)
            """,
        optimizer="",
    )
    assert guards(migrated, "deepspeed.initialize") == []


def test_trap_12_precision_follows_the_argument_at_run_time() -> None:
    migrated = convert(loop=AMP)
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)\n' in migrated.section("optimizer")
    assert "scaler = EngineGradScaler(enabled=args.amp)" in migrated.section("loop")


def test_trap_13_buffers_are_spoken_of() -> None:
    migrated = convert(wrap="model = DDP(nn.Sequential(nn.BatchNorm1d(32), Net()).cuda())")
    assert "BatchNorm" in migrated.said("MG104", "model = DDP(", Kind.KEPT).message


def test_trap_14_a_teacher_is_no_second_engine() -> None:
    migrated = convert(
        wrap="""
            model = DDP(Net().cuda())
            teacher = DDP(Net().cuda())
            teacher.load_state_dict(model.state_dict())
            """,
        loop="""
            for x, y in train_loader:
                loss = F.mse_loss(model(x), teacher(x).detach())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    for s, t in zip(model.module.parameters(), teacher.module.parameters()):
                        t.mul_(0.99).add_(s, alpha=0.01)
            """,
    )
    assert len(calls(migrated, "initialize")) == 1
    assert "teacher = DDP(Net().cuda())\n" in migrated.section("wrap")


def test_trap_14_a_gan_is_refused() -> None:
    source = script(
        wrap="""
            model = DDP(Net().cuda())
            critic = DDP(Net().cuda())
            """,
        optimizer="""
            optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
            critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4)
            """,
        loop="""
            for x, y in train_loader:
                critic_optimizer.zero_grad()
                critic(model(x).detach()).mean().backward()
                critic_optimizer.step()
                optimizer.zero_grad()
                critic(model(x)).mean().neg().backward()
                optimizer.step()
            """,
    )
    check_refused(source, "MG902", "    optimizer.step()")


def test_trap_15_the_loss_is_still_computed_under_autocast() -> None:
    code = convert(loop=BF16).section("loop")
    assert (
        '    with torch.autocast("cuda", dtype=torch.bfloat16):\n        loss = F.cross_entropy(model(x), y)\n'
    ) in code
