"""DDP's communication hooks: those that round gradients become a key of the config, all others are refused."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_refused, convert, migrate, script
from tests.codemod.steps.comm_hook_scripts import BF, BF16, FP16, HALF, HOOKS, IMPORTS, OPTIONS, chosen, hooked, refused

# -- what has no counterpart ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "hook", "nearest"),
    [
        ("powersgd.PowerSGDState(None)", "powersgd.powerSGD_hook", "communication_data_type"),
        ("state", "powersgd.batched_powerSGD_hook", "communication_data_type"),
        ("None", "hooks.fp16_compress_wrapper(powersgd.powerSGD_hook)", "communication_data_type"),
        ("None", "quantization_hooks.quantization_pertensor_hook", "zero_quantized_gradients"),
        ("state", "post_localSGD_hook.post_localSGD_hook", "accumulation"),
        ("None", "debugging_hooks.noop_hook", "averages"),
        ("None", "ddp_zero_hook.hook_with_zero_step(hooks.allreduce_hook, model, optimizer)", "after backward"),
        ("None", "optimizer_overlap_hooks._hook_then_optimizer(hooks.allreduce_hook, state)", "own communication"),
        ("None", "hooks.bf16_compress_wrapper(hooks.fp16_compress_hook)", "inside of another"),
        ("None", "lambda state, bucket: bucket.buffer()", "own communication"),
        ("None", "getattr(hooks, args.hook)", "own communication"),
        ("None", "TABLE[args.hook]", "own communication"),
    ],
)
def test_other_hooks_are_refused_with_what_is_nearest(state: str, hook: str, nearest: str) -> None:
    line = f"model.register_comm_hook({state}, {hook})"
    source = script(imports=IMPORTS, options=OPTIONS, resume=line)
    check_refused(source, "MG903", line, "a DDP communication hook, is registered")
    (change,) = migrate(source).changes
    assert nearest in change.reason


@pytest.mark.parametrize("name", ["fp16_compress_hook", "average"])
def test_a_hook_of_the_scripts_own_is_refused_whatever_its_name(name: str) -> None:
    helpers = f"""
        def {name}(group, bucket):
            return dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        """
    line = f"model.register_comm_hook(None, {name})"
    refused(line, line, name, helpers=helpers)


@pytest.mark.parametrize("group", ["dist.new_group([0, 1])", "args.group", "groups[0]"])
def test_a_group_of_its_own_is_refused(group: str) -> None:
    line = f"model.register_comm_hook({group}, hooks.fp16_compress_hook)"
    refused(line, line, group)


def test_a_fused_optimizer_is_refused() -> None:
    line = "model._register_fused_optim(torch.optim.AdamW, lr=1e-3)"
    refused(line, line, "_register_fused_optim")


def test_a_model_that_cannot_be_told_is_refused() -> None:
    refused("find_model().register_comm_hook(None, hooks.fp16_compress_hook)", "find_model()", "cannot be told")


def test_a_registration_inside_of_an_expression_is_refused() -> None:
    refused(f"done = {FP16}", f"done = {FP16}", "inside of an expression")


def test_a_hook_of_the_default_settings_is_refused_also_under_a_flag() -> None:
    registration = """
        if args.compress:
            model.register_comm_hook(powersgd.PowerSGDState(None), powersgd.powerSGD_hook)
        """
    refused(registration, "model.register_comm_hook(powersgd", "powerSGD_hook")


def test_a_hook_under_a_flag_that_is_not_known_is_refused() -> None:
    registration = """
        if wanted():
            model.register_comm_hook(powersgd.PowerSGDState(None), powersgd.powerSGD_hook)
        """
    refused(registration, "model.register_comm_hook(powersgd", "powerSGD_hook")


def test_one_of_several_hooks_that_has_no_counterpart_is_refused() -> None:
    registration = """
        hook = powersgd.powerSGD_hook if args.fp16_hook else hooks.fp16_compress_hook
        model.register_comm_hook(None, hook)
        """
    refused(registration, "model.register_comm_hook(None, hook)", "powerSGD_hook")


def test_the_hook_of_a_model_that_stays_wrapped_stays() -> None:
    migrated = convert(
        imports=IMPORTS,
        wrap="""
            model = DDP(Net().cuda())
            teacher = DDP(Net().cuda())
            teacher.register_comm_hook(None, powersgd.powerSGD_hook)
            """,
    )
    assert "teacher.register_comm_hook(None, powersgd.powerSGD_hook)" in migrated.code
    assert "communication_data_type" not in migrated.config


# -- what becomes a key --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "line", "format_"),
    [
        (f"from {HOOKS} import default_hooks as d", "model.register_comm_hook(None, d.fp16_compress_hook)", HALF),
        (f"from {HOOKS} import default as d", "model.register_comm_hook(state=None, hook=d.bf16_compress_hook)", BF),
        (
            f"from {HOOKS}.default_hooks import fp16_compress_hook as half",
            "model.register_comm_hook(dist.group.WORLD, half)",
            "fp16",
        ),
        (f"import {HOOKS}.default_hooks as h", "model.register_comm_hook(hook=h.fp16_compress_hook, state=None)", HALF),
        (f"from {HOOKS}.default_hooks import *", "model.register_comm_hook(None, fp16_compress_hook)", "fp16"),
        (
            f"from {HOOKS} import default as d",
            "model.register_comm_hook(None, d.fp16_compress_wrapper(d.allreduce_hook))",
            "fp16",
        ),
        (
            f"from {HOOKS} import default as d",
            "model.register_comm_hook(dist.new_group(), d.bf16_compress_wrapper(d.bf16_compress_hook))",
            "bf16",
        ),
        ("", "model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)", "fp16"),
        (
            f"from {HOOKS} import DDPCommHookType, register_ddp_comm_hook",
            "register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, model, state=None)",
            "bf16",
        ),
        (
            f"from {HOOKS} import DDPCommHookType",
            "DDPCommHookType.FP16_COMPRESS.value(model=model, state=None)",
            "fp16",
        ),
    ],
)  # fmt: skip
def test_every_way_to_register_is_known(imports: str, line: str, format_: str) -> None:
    migrated = hooked(line, imports=imports)
    assert migrated.config["communication_data_type"] == format_
    assert "prescale_gradients" not in migrated.config
    assert "comm_hook" not in migrated.code.replace(f"from {HOOKS}.default_hooks import *", "")
    assert 'ds_config["communication_data_type"]' not in migrated.code
    assert format_ in migrated.said("MG309", line, Kind.CONVERTED).message


@pytest.mark.parametrize(
    "line",
    [
        "model.register_comm_hook(None, hooks.allreduce_hook)",
        "model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)",
    ],
)
def test_the_default_hook_just_goes(line: str) -> None:
    migrated = hooked(line)
    migrated.said("MG309", line, Kind.CONVERTED)
    assert "communication_data_type" not in migrated.config
    assert line not in migrated.code


@pytest.mark.parametrize("arguments", ["gradient_as_bucket_view=True", "static_graph=True, bucket_cap_mb=50"])
def test_arguments_of_the_wrap_are_dropped_beside_a_hook(arguments: str) -> None:
    migrated = hooked(FP16, wrap=f"model = DDP(Net().cuda(), {arguments})")
    migrated.said("MG103", "model = DDP(")
    assert chosen(migrated) == '"fp16"'


@pytest.mark.parametrize(
    ("stage", "line", "prescaled", "says"),
    [
        (0, FP16, True, "prescale_gradients"),
        (0, BF16, False, "those of the hook"),
        (1, FP16, False, "before it rounds"),
        (2, FP16, False, "before it rounds"),
        (3, FP16, False, "those of the hook"),
        (2, BF16, False, "those of the hook"),
    ],
)
def test_the_report_says_what_differs_at_the_stage(stage: int, line: str, prescaled: bool, says: str) -> None:
    migrated = hooked(line, to={"zero_stage": stage})
    assert migrated.config.get("prescale_gradients", False) is prescaled
    assert says in migrated.said("MG309", line, Kind.CONVERTED).reason


@pytest.mark.parametrize(("release", "spelt"), [("0.14.0", "bfp16"), ("0.14.1", "bf16")])
def test_the_format_is_spelt_as_the_release_spells_it(release: str, spelt: str) -> None:
    to = {"target_version": release}
    assert hooked(BF16, to=to).config["communication_data_type"] == spelt
    assert chosen(hooked(f"if args.amp:\n    {BF16}", to=to)) == f'"{spelt}" if args.amp else None'
    assert hooked(FP16, to=to).config["communication_data_type"] == "fp16"


AUTOCAST = """
for x, y in train_loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_the_report_says_where_autocast_decides_instead() -> None:
    migrated = hooked(FP16, loop=AUTOCAST)
    assert chosen(migrated) == '"fp16"'
    assert "float32" in migrated.said("MG309", FP16, Kind.KEPT).message
    whole = hooked(FP16, loop=AUTOCAST, to={"zero_stage": 0})
    assert not [c for c in whole.changes if c.code == "MG309" and c.kind is Kind.KEPT]
