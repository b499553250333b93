"""What the engine really does, each fact as a claim about conversions."""

from __future__ import annotations

import ast
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


def test_fact_7_the_norm_is_asked_for_behind_the_step_and_kept_at_stage_0() -> None:
    migrated = convert(loop=plain("norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3)", after=("print(norm)",)))
    assert "engine.clip_fp32_gradients = measure" in migrated.code
    assert "engine._take_model_step = step" in migrated.code


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
    assert "            scaler.unscale_(engine.optimizer)" in migrated.code
    assert "norm = torch.as_tensor(model.get_global_grad_norm(), device=model.device)" in migrated.section("loop")


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
    assert "take it with a gradient of 0" in told.message


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


def test_fact_12_weights_loaded_behind_the_engine_are_named() -> None:
    line = 'model.module.load_state_dict(torch.load("pretrained.pt"))'
    told = convert(resume=line).said("MG625", line, Kind.TODO)
    assert "undone by the next step, but for frozen ones" in told.message


def test_fact_12_weights_of_a_resume_come_through_the_engine() -> None:
    migrated = convert(loop=SAVING, resume=RESUME)
    assert "load_state_dict" not in migrated.section("resume")
    assert "resume_engine(model)" in migrated.section("resume")


@pytest.mark.parametrize("key", ["optimizer", "lr_scheduler", "global_steps", "module"])
def test_fact_13_keys_of_the_script_cannot_meet_those_of_the_engine(key: str) -> None:
    state = STATE.replace('"epoch"', f'"{key}"') if key != "optimizer" else STATE
    migrated = convert(loop=SAVING.replace(STATE, state), resume=RESUME)
    (save,) = calls(migrated, "save_checkpoint")
    client_state = {k.arg: k.value for k in save.keywords}["client_state"]
    assert isinstance(client_state, ast.Dict)
    assert [ast.literal_eval(k) for k in client_state.keys if k is not None] == ["script"]


def test_fact_14_a_checkpoint_is_a_directory() -> None:
    migrated = convert(loop=SAVING, resume=RESUME)
    assert "os.path.exists(args.resume)" in migrated.section("resume")
    assert "os.path.isfile(args.resume)" not in migrated.section("resume")


def test_fact_14_the_path_of_the_script_is_directory_and_tag() -> None:
    code = convert(loop=SAVING, resume=RESUME).code
    assert 'engine.save_checkpoint(os.path.dirname(path) or ".", tag=os.path.basename(path)' in code
    assert re.search(
        r'engine\.load_checkpoint\(os\.path\.dirname\((\S+)\) or "\.", tag=os\.path\.basename\(\1\)\)', code
    )


def test_fact_15_buffers_are_sent_once() -> None:
    migrated = convert(wrap="model = DDP(nn.Sequential(nn.BatchNorm1d(32), Net()).cuda())")
    code = migrated.section("optimizer")
    assert code.index("deepspeed.initialize") < code.index("torch.distributed.broadcast(buffer.data, src=0)")


def test_fact_16_weights_are_gathered_on_all_ranks_at_stage_3() -> None:
    migrated = convert(
        end='if rank == 0:\n    torch.save(model.module.state_dict(), "weights.pt")', to={"zero_stage": 3}
    )
    assert guards(migrated, "deepspeed.zero.GatheredParameters") == []
    assert "deepspeed.zero.GatheredParameters(list(model.module.parameters()))" in migrated.section("end")


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


def test_fact_17_a_spawned_worker_gets_its_ranks_from_the_launcher() -> None:
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
    assert 'worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))' in migrated.section("end")
    assert calls(migrated, "spawn") == []
    assert 'os.environ.setdefault("MASTER_PORT", "29501")' in migrated.section("helpers")


# -- measured beside them ----------------------------------------------------------------------------------------------


def test_a_live_scaler_drives_the_engine_at_every_stage() -> None:
    """DeepSpeed 0.19.8's own fp16 autocast scale never falls at ZeRO 1-3, and it clips scaled gradients there."""
    code = convert(loop=AMP).code
    assert "engine.optimizer.torch_autocast_gradscaler = None" in code
    assert "engine.optimizer.override_loss_scale(self.get_scale())" in code
    assert "engine.torch_autocast_z0_gradscaler = self" in code


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


def test_gradients_thrown_away_are_thrown_away_at_stage_2_too() -> None:
    """engine.optimizer.zero_grad() alone keeps what ZeRO 2 has accumulated."""
    migrated = convert(
        loop="for _ in range(2):\n    optimizer.zero_grad()\n"
        + "\n".join(f"    {line}" for line in WINDOWS.splitlines()),
        resume=SCHEDULER,
    )
    assert len(calls(migrated, "drop_gradients")) == 1
    assert 'zero.all_grad_tensors if hasattr(zero, "all_grad_tensors") else zero.averaged_gradients' in migrated.code


def test_layerwise_optimizers_are_not_cut_into_pieces() -> None:
    migrated = convert(optimizer="optimizer = torch.optim.Adafactor(model.parameters())")
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_dropped_keywords_of_backward_would_be_an_error() -> None:
    """engine.backward takes retain_graph and scale_wrt_gas only."""
    migrated = convert(loop=plain().replace("backward()", "backward(create_graph=False, retain_graph=False)"))
    assert "model.backward(loss)\n" in migrated.section("loop")
