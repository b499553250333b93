"""DDP's communication hooks: those that round gradients become a key of the config, all others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, check_refused, convert, migrate, script

HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"
IMPORTS = f"""
from {HOOKS} import default as hooks
from {HOOKS} import powerSGD_hook as powersgd
from {HOOKS} import quantization_hooks, post_localSGD_hook, debugging_hooks, ddp_zero_hook, optimizer_overlap_hooks
"""
OPTIONS = """
parser.add_argument("--fp16-hook", action="store_true")
parser.add_argument("--plain", action="store_false", dest="compress")
parser.add_argument("--hook", default="none")
"""
FP16 = "model.register_comm_hook(None, hooks.fp16_compress_hook)"
HALF, BF = "fp16", "bf16"
BF16 = "model.register_comm_hook(None, hooks.bf16_compress_hook)"


def hooked(registration: str, *, to: dict[str, Any] | None = None, **parts: str) -> Migrated:
    """The script with a registration, converted."""
    parts.setdefault("imports", IMPORTS)
    parts.setdefault("options", OPTIONS)
    return convert(to=to, resume=registration, **parts)


def chosen(migrated: Migrated) -> str | None:
    """The expression that the script gives the key, or what the config says."""
    for line in migrated.code.splitlines():
        left, separator, right = line.strip().partition(" = ")
        if separator and left == 'ds_config["communication_data_type"]':
            return right
    found = migrated.config.get("communication_data_type")
    return None if found is None else f'"{found}"'


def refused(registration: str, line: str, message: str, **parts: str) -> None:
    source = script(imports=IMPORTS, options=OPTIONS, resume=registration, **parts)
    check_refused(source, "MG903", line, message)


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


# -- under conditions ----------------------------------------------------------------------------------------------

CHOICE = "hook = hooks.bf16_compress_hook if args.fp16_hook else hooks.allreduce_hook\n"
TABLE = """
TABLE = {"half": hooks.fp16_compress_hook, "brain": hooks.bf16_compress_hook, "none": hooks.allreduce_hook}
"""


@pytest.mark.parametrize(
    ("registration", "expression"),
    [
        (f"if args.fp16_hook:\n    {FP16}", '"fp16" if args.fp16_hook else None'),
        (f'if args.hook == "half":\n    {FP16}', '"fp16" if args.hook == "half" else None'),
        (f"if not args.fp16_hook:\n    pass\nelse:\n    {FP16}", '"fp16" if not (not args.fp16_hook) else None'),
        (f"if args.fp16_hook or args.amp:\n    {FP16}", '"fp16" if (args.fp16_hook or args.amp) else None'),
        (
            f"if args.fp16_hook:\n    if args.amp:\n        {FP16}",
            '"fp16" if args.fp16_hook and args.amp else None',
        ),
        (
            f'if args.hook == "fp16":\n    {FP16}\nelif args.hook == "bf16":\n    {BF16}',
            '{"fp16": "fp16", "bf16": "bf16"}.get(args.hook)',
        ),
        (
            f'if args.hook == "fp16":\n    {FP16}\nelif args.amp:\n    {BF16}',
            '"fp16" if args.hook == "fp16" else "bf16" if args.amp else None',
        ),
        (f"if args.fp16_hook:\n    {FP16}\nelse:\n    {BF16}", '"fp16" if args.fp16_hook else "bf16"'),
        (
            f"if args.amp:\n    print(1)\nelif args.fp16_hook:\n    {FP16}",
            '"fp16" if not args.amp and args.fp16_hook else None',
        ),
        (
            CHOICE + "model.register_comm_hook(None, hook)",
            '"bf16" if args.fp16_hook else None',
        ),
        (
            TABLE + "model.register_comm_hook(None, TABLE[args.hook])",
            '{"half": "fp16", "brain": "bf16", "none": None}[args.hook]',
        ),
        (
            'if args.fp16_hook:\n    model.register_comm_hook(None, {"half": hooks.fp16_compress_hook}[args.hook])',
            '{"half": "fp16"}[args.hook] if args.fp16_hook else None',
        ),
        (f"if HALF:\n    {FP16}", '"fp16"'),
        (f"if not HALF:\n    {FP16}", None),
        (f'if NAME == "fp16" and HALF:\n    {FP16}', '"fp16"'),
        (f'if NAME != "fp16" or not HALF:\n    {FP16}', None),
        (f'if NAME in ("bf16", "brain"):\n    {FP16}', None),
        (f'if hasattr(model, "register_comm_hook"):\n    {FP16}', '"fp16"'),
        (f"if isinstance(model, DDP):\n    {FP16}", '"fp16"'),
        (f"try:\n    {FP16}\nexcept RuntimeError:\n    print(1)", '"fp16"'),
        (f"with open(args.output) as file:\n    {FP16}", '"fp16"'),
    ],
)  # fmt: skip
def test_the_key_follows_what_decided_about_the_hook(registration: str, expression: str | None) -> None:
    migrated = hooked(registration, helpers='HALF = True\nNAME = "fp16"')
    assert chosen(migrated) == expression, migrated.code
    assert "register_comm_hook(" not in migrated.code


def test_the_config_says_what_the_default_of_the_option_says() -> None:
    assert hooked(f"if args.fp16_hook:\n    {FP16}").config["communication_data_type"] is None
    assert hooked(f"if args.compress:\n    {FP16}").config["communication_data_type"] == "fp16"


def test_a_condition_of_the_wrap_counts_too() -> None:
    migrated = convert(
        imports=IMPORTS,
        wrap=f"""
            model = Net().cuda()
            if args.distributed:
                model = DDP(model)
                {FP16}
            """,
    )
    assert chosen(migrated) == '"fp16" if args.distributed else None'


def test_a_condition_of_the_wrap_that_cannot_be_had_is_left_out() -> None:
    migrated = convert(
        imports=IMPORTS,
        wrap=f"""
            model = Net().cuda()
            if dist.is_initialized():
                model = DDP(model)
                {FP16}
            """,
    )
    assert chosen(migrated) == '"fp16"'


def test_a_helper_that_registers_is_followed_to_its_caller() -> None:
    migrated = hooked(
        "compress(model, args.fp16_hook)",
        helpers="""
            def compress(ddp, wanted):
                if wanted:
                    ddp.register_comm_hook(None, hooks.fp16_compress_hook)
            """,
    )
    assert chosen(migrated) == '"fp16" if args.fp16_hook else None'


def test_leaving_the_training_itself_early_is_no_condition() -> None:
    migrated = hooked(f"if args.amp:\n    return\n{FP16}")
    assert chosen(migrated) == '"fp16"'


_HELPERS = """
def compress(ddp):
    ddp.register_comm_hook(None, hooks.fp16_compress_hook)
"""
_LEAVES_EARLY = """
def maybe(ddp):
    if len(os.environ) > 100:
        return
    ddp.register_comm_hook(None, hooks.fp16_compress_hook)
"""


@pytest.mark.parametrize(
    ("helpers", "registration"),
    [
        ("", f"if wanted():\n    {FP16}\nprint(1)"),
        ("", f"for _ in range(args.epochs):\n    {FP16}"),
        ("", f"try:\n    print(1)\nexcept RuntimeError:\n    {FP16}"),
        (_HELPERS, "compress(model)\ncompress(model)"),
        (_LEAVES_EARLY, "if args.amp:\n    maybe(model)"),
    ],
)
def test_what_cannot_be_had_where_the_engine_is_made_is_left_to_the_person(helpers: str, registration: str) -> None:
    migrated = hooked(registration, helpers=helpers)
    assert chosen(migrated) is None
    assert "TODO(dsmigrate MG309)" in migrated.code
    assert [c.kind for c in migrated.changes if c.code == "MG309"].count(Kind.TODO) >= 1


def test_an_option_for_a_hook_without_counterpart_raises() -> None:
    migrated = hooked(
        """
        if args.hook == "fp16":
            model.register_comm_hook(None, hooks.fp16_compress_hook)
        elif args.hook == "powersgd":
            state = powersgd.PowerSGDState(None)
            model.register_comm_hook(state, powersgd.powerSGD_hook)
        """
    )
    assert chosen(migrated) == '"fp16" if args.hook == "fp16" else None'
    assert 'raise NotImplementedError("DeepSpeed has nothing like DDP\'s powerSGD_hook")' in migrated.code
    migrated.said("MG310", "model.register_comm_hook(state, powersgd", Kind.TODO)


def test_a_function_that_nothing_calls_is_left_to_the_person() -> None:
    migrated = convert(imports=IMPORTS, helpers=_HELPERS)
    migrated.said("MG309", "ddp.register_comm_hook(", Kind.TODO)
    assert "communication_data_type" not in migrated.config


# -- copies of the hooks -------------------------------------------------------------------------------------------

COPY = """
import torch.distributed as d

def compress(
    process_group: d.ProcessGroup, bucket: d.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    \"\"\"Casts to half precision.\"\"\"
    group = process_group if process_group is not None else d.group.WORLD
    world_size = group.size()

    compressed = bucket.buffer().to(torch.float16).div_(world_size)
    fut = d.all_reduce(compressed, group=group, async_op=True).get_future()

    def decompress(fut):
        decompressed = bucket.buffer()
        # in place
        decompressed.copy_(fut.value()[0])
        return decompressed

    return fut.then(decompress)
"""
OWN = "model.register_comm_hook(None, compress)"


@pytest.mark.parametrize(
    ("old", "new", "format_"),
    [
        ("", "", "fp16"),
        ("torch.float16", "torch.half", "fp16"),
        ("torch.float16", "torch.bfloat16", "bf16"),
        ("bucket.buffer()", "bucket.get_tensor()", "fp16"),
        ("group.size()", "process_group.size() if process_group is not None else d.get_world_size()", "fp16"),
    ],
)
def test_a_copy_of_a_hook_of_any_release_is_that_hook(old: str, new: str, format_: str) -> None:
    migrated = hooked(OWN, helpers=COPY.replace(old, new) if old else COPY)
    assert chosen(migrated) == f'"{format_}"'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (".div_(world_size)", ""),
        ("(torch.float16)", "(torch.float8_e4m3fn)"),
        ("group.size()", "2"),
        ("import torch.distributed as d", "import torch.distributed as d\nfrom mine import world as d"),
        ("import torch.distributed as d", "import mine as d"),
        ("        decompressed = bucket.buffer()", "        decompressed = bucket.buffer().mul_(2)"),
        ("compressed = bucket", "other = bucket"),
        ("    return fut.then(decompress)", "    return fut"),
    ],
)
def test_a_hook_that_differs_from_torchs_in_anything_is_refused(old: str, new: str) -> None:
    assert old in COPY
    refused(OWN, OWN, "compress", helpers=COPY.replace(old, new))
