"""Communication hooks under conditions: the key of the config follows them."""

from __future__ import annotations

import ast

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.comm_hook_scripts import BF16, FP16, IMPORTS, chosen, hooked

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


def test_a_hook_whose_text_has_quotes_raises_too() -> None:
    migrated = hooked(
        """
        if args.hook == "fp16":
            model.register_comm_hook(None, hooks.fp16_compress_hook)
        elif args.hook == "other":
            model.register_comm_hook(None, table["other"])
        """
    )
    (line,) = (line for line in migrated.code.splitlines() if "raise NotImplementedError" in line)
    assert ast.literal_eval(line.strip().removeprefix("raise NotImplementedError")).endswith('"]')
