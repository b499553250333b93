"""What the engine really does, each fact as a claim about conversions."""

from __future__ import annotations

import re

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.loops import AMP, BF16, RESUME, SAVING, SCHEDULER, STATE, WINDOWS, calls, guards, plain

# -- facts -------------------------------------------------------------------------------------------------------------


def test_fact_1_autocast_is_on_in_the_config_or_the_engine_switches_it_off() -> None:
    assert convert(loop=BF16).config["torch_autocast"]["enabled"] is True


@pytest.mark.parametrize(("release", "entered"), [("0.17.1", 0), ("0.17.2", 1), ("0.17.6", 0)])
def test_fact_1_only_versions_that_switch_the_region_off_enter_it_in_forward(release: str, entered: int) -> None:
    migrated = convert(loop=BF16, to={"target_version": release})
    assert ("torch_autocast" in migrated.config) is (release == "0.17.6")
    assert len(calls(migrated, "enter_in_forward")) == entered


@pytest.mark.parametrize("loop", [AMP, BF16], ids=["fp16", "bf16"])
def test_fact_2_gradients_are_reduced_in_full_precision(loop: str) -> None:
    config = convert(loop=loop).config
    assert config["torch_autocast"]["lower_precision_safe_modules"] == []
    assert "fp16" not in config
    assert "bf16" not in config


@pytest.mark.parametrize("version", ["0.14.0", "0.19.3"])
def test_fact_3_older_versions_are_told_where_a_window_ends(version: str) -> None:
    migrated = convert(loop=WINDOWS, resume=SCHEDULER, to={"target_version": version})
    code = migrated.section("loop")
    assert "managed_gradient_accumulation" not in migrated.config
    assert code.index("set_gradient_accumulation_boundary(") < code.index("model.backward(loss)")


def test_fact_4_an_unmanaged_window_is_not_divided_by_the_engine() -> None:
    config = convert(loop=WINDOWS, resume=SCHEDULER).config
    assert (config["gradient_accumulation_steps"], config["managed_gradient_accumulation"]) == (1, False)


def test_fact_4_an_unmanaged_window_does_not_overlap_communication() -> None:
    """``overlap_comm: true`` asserts at ZeRO 0 and 1 without management."""
    assert "overlap_comm" not in convert(loop=WINDOWS, resume=SCHEDULER).config["zero_optimization"]


def test_fact_5_the_logged_loss_is_the_scripts() -> None:
    migrated = convert(loop=plain(after=("print(loss.item())",)))
    code = migrated.section("loop")
    assert "= model.backward(" not in code
    assert code.endswith("    print(loss.item())\n")


@pytest.mark.parametrize("context", ["model.no_sync()", "contextlib.nullcontext() if i % 2 else model.no_sync()"])
def test_fact_5_no_sync_is_gone(context: str) -> None:
    migrated = convert(
        loop=f"""
            for i, (x, y) in enumerate(train_loader):
                with {context}:
                    (F.cross_entropy(model(x), y) / 2).backward()
                if i % 2:
                    optimizer.step()
                    optimizer.zero_grad()
            """
    )
    assert "no_sync" not in migrated.code


def test_fact_6_two_forwards_with_one_backward_are_one_step() -> None:
    migrated = convert(
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y) + F.mse_loss(model(-x), model(x))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """
    )
    assert "managed_gradient_accumulation" not in migrated.config


def test_fact_7_the_norm_is_asked_for_behind_the_step() -> None:
    migrated = convert(loop=plain("norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3)", after=("print(norm)",)))
    assert "ds_compat.keep_grad_norm(model)" in migrated.section("optimizer")
    assert "model.step()\n    norm = ds_compat.grad_norm(model)\n" in migrated.section("loop")


def test_fact_7_a_step_that_the_scaler_skips_has_a_norm_at_stage_0() -> None:
    loop = """
        scaler = torch.amp.GradScaler("cuda")
        for x, y in train_loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            scaler.step(optimizer)
            scaler.update()
            print(norm)
        """
    migrated = convert(loop=loop, to={"zero_stage": 0})
    assert "ds_compat.use_grad_scaler(model, scaler)" in migrated.section("loop")
    assert "norm = ds_compat.grad_norm(model)" in migrated.section("loop")


@pytest.mark.parametrize(
    "line", ["nn.utils.clip_grad_value_(model.parameters(), 1.0)", "print(model.module.head.weight.grad)"]
)
def test_fact_7_code_on_gradients_runs_where_they_are_whole(line: str) -> None:
    migrated = convert(loop=plain(line))
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert "managed_gradient_accumulation" not in migrated.config


def test_fact_8_a_frozen_group_is_named_at_the_stages_that_fail() -> None:
    migrated = convert(
        wrap="net = Net().cuda()\nfor p in net.body.parameters():\n    p.requires_grad = False\nmodel = DDP(net)",
        optimizer="optimizer = torch.optim.SGD([{'params': net.body.parameters()}, {'params': net.head.parameters()}])",
        to={"zero_stage": 2},
    )
    migrated.said("MG706", "optimizer = ", Kind.TODO)


def test_fact_8_unused_parameters_are_spoken_of() -> None:
    migrated = convert(wrap="model = DDP(Net().cuda(), find_unused_parameters=True)")
    told = migrated.said("MG110", "find_unused_parameters=True", Kind.KEPT)
    assert "Unused parameters now get weight decay" in told.message


def test_fact_9_the_client_optimizer_keeps_its_name_and_its_groups() -> None:
    line = 'optimizer.param_groups[0]["lr"] = 0.1'
    migrated = convert(loop=plain(after=(line,)))
    assert f"    {line}\n" in migrated.section("loop")
    assert "engine.optimizer" not in migrated.code
    assert re.search(r"model, optimizer.* = deepspeed\.initialize", migrated.code) is None


def test_fact_10_no_zero_grad_is_left_to_drop_what_the_engine_holds() -> None:
    for spelling in ("optimizer.zero_grad()", "model.zero_grad()", "optimizer.zero_grad(set_to_none=True)"):
        migrated = convert(loop=plain().replace("optimizer.zero_grad()", spelling))
        assert "zero_grad" not in migrated.section("loop")


def test_fact_11_modes_return_nothing_and_training_is_the_modules() -> None:
    migrated = convert(end="net = model.eval()\nprint(net, model.training)")
    assert migrated.section("end") == "model.eval()\nnet = model\nprint(net, model.module.training)\n"


def test_fact_12_weights_loaded_behind_the_engine_reach_the_masters() -> None:
    line = 'model.module.load_state_dict(torch.load("pretrained.pt"))'
    migrated = convert(resume=line)
    assert "ds_compat.keep_torch_checkpoints(model)" in migrated.section("optimizer")
    assert migrated.section("resume") == f"{line}\n"


def test_fact_12_a_resume_stays_as_it_is() -> None:
    migrated = convert(loop=SAVING, resume=RESUME)
    assert migrated.section("resume") == RESUME.lstrip("\n")
    assert "ds_compat.keep_torch_checkpoints(model" in migrated.section("optimizer")


def test_fact_13_a_checkpoint_keeps_the_keys_and_the_path_of_the_script() -> None:
    code = convert(loop=SAVING, resume=RESUME).section("loop")
    assert f'torch.save({STATE}, os.path.join(args.output, "last.pt"))' in code
    assert code.index("ds_compat.gather_checkpoint(model") < code.index("if rank == 0:")


def test_fact_16_weights_are_gathered_on_all_ranks_at_stage_3() -> None:
    migrated = convert(
        end='if rank == 0:\n    torch.save(model.module.state_dict(), "weights.pt")', to={"zero_stage": 3}
    )
    assert guards(migrated, "ds_compat.gather_checkpoint") == []
    assert migrated.section("end").startswith("ds_compat.gather_checkpoint(model, optimizer=False)\nif rank == 0:\n")


def test_fact_16_inference_mode_does_not_kill_training_at_stage_3() -> None:
    evaluation = """
        for epoch in range(args.epochs):
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.inference_mode():
                print(model(x).sum())
        """
    migrated = convert(loop=evaluation, to={"zero_stage": 3})
    assert "torch.no_grad()" in migrated.section("loop") or any(c.kind is Kind.TODO for c in migrated.changes)


def test_fact_17_a_spawned_worker_says_its_number() -> None:
    migrated = convert(
        helpers="""
            def worker(rank, size):
                os.environ["MASTER_PORT"] = "29501"
                dist.init_process_group("nccl", rank=rank, world_size=size)
                torch.cuda.set_device(rank)
                model = DDP(Net().cuda(rank))
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for x, y in DataLoader(Digits("train"), batch_size=8):
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(x.cuda()), y.cuda())
                    loss.backward()
                    optimizer.step()
            """,
        **dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), ""),
        end="mp.spawn(worker, args=(2,), nprocs=2)",
    )
    assert len(calls(migrated, "spawn")) == 1
    assert 'os.environ["LOCAL_RANK"] = str(rank)' in migrated.section("helpers")


# -- measured beside them ----------------------------------------------------------------------------------------------


def test_a_live_scaler_drives_the_engine_at_every_stage() -> None:
    """DeepSpeed 0.19.8's own fp16 autocast scale never falls at ZeRO 1-3, and it clips scaled gradients there."""
    migrated = convert(loop=AMP)
    assert "ds_compat.use_grad_scaler(model, scaler)" in migrated.section("loop")
    assert "    scaler.update()\n" in migrated.section("loop")


def test_evaluation_outside_autocast_stays_in_full_precision() -> None:
    """With torch_autocast enabled the engine autocasts every forward, under no region as well."""
    migrated = convert(
        helpers="""
            @torch.no_grad()
            def evaluate(model, loader):
                return sum(F.cross_entropy(model(x), y).item() for x, y in loader)
            """,
        loop=BF16 + "    print(evaluate(model, train_loader))\n",
    )
    assert "F.cross_entropy(model.module(x), y)" in migrated.section("helpers")


def test_windows_that_end_with_the_epoch_leave_nothing_to_throw_away() -> None:
    migrated = convert(
        loop="for _ in range(2):\n    optimizer.zero_grad()\n"
        + "\n".join(f"    {line}" for line in WINDOWS.splitlines()),
        resume=SCHEDULER,
    )
    assert calls(migrated, "drop_gradients") == []


def test_layerwise_optimizers_are_not_cut_into_pieces() -> None:
    migrated = convert(optimizer="optimizer = torch.optim.Adafactor(model.parameters())")
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_dropped_keywords_of_backward_would_be_an_error() -> None:
    """engine.backward takes retain_graph and scale_wrt_gas only."""
    migrated = convert(loop=plain().replace("backward()", "backward(create_graph=False, retain_graph=False)"))
    assert "model.backward(loss)\n" in migrated.section("loop")
