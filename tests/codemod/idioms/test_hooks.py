"""Communication hooks of the wrapper."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import Converted
from tests.codemod.idioms.test_model import trained

HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"
IMPORTS = f"from {HOOKS} import default as hooks, powerSGD_hook as powersgd, register_ddp_comm_hook, DDPCommHookType"


def hooked(lines: str, **parts: str) -> Converted:
    return trained(imports=IMPORTS + parts.pop("imports", ""), before=lines, **parts)


@pytest.mark.parametrize(
    "hook",
    [
        "powersgd.powerSGD_hook",
        "lambda state, bucket: bucket.buffer()",
        "hooks.fp16_compress_wrapper(powersgd.powerSGD_hook)",
    ],
)
def test_hooks_that_deepspeed_does_not_have_are_refused(hook: str) -> None:
    found = hooked(f"model.register_comm_hook(None, {hook})")
    assert found.status is Status.REFUSED
    found.said("MG903")


def test_one_under_an_option_that_is_off_raises_there() -> None:
    found = hooked("if args.half:\n    model.register_comm_hook(None, powersgd.powerSGD_hook)")
    assert "raise NotImplementedError(" in found.text
    found.said("MG310", Kind.TODO)


def test_one_of_two_raises_under_its_option() -> None:
    found = hooked("model.register_comm_hook(None, powersgd.powerSGD_hook if args.half else hooks.fp16_compress_hook)")
    assert "if args.half:\n        raise NotImplementedError(" in found.text
    assert found.said("MG310").kind is Kind.TODO


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("model.register_comm_hook(None, hooks.fp16_compress_hook)", "fp16"),
        ("model.register_comm_hook(state=None, hook=hooks.bf16_compress_hook)", "bf16"),
        ("model.register_comm_hook(dist.group.WORLD, hooks.bf16_compress_hook)", "bf16"),
        ("model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)", "fp16"),
        ("register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, model, state=None)", "bf16"),
        ("model.register_comm_hook(None, hooks.allreduce_hook)", None),
    ],
)
def test_those_that_round_become_the_format_in_the_config(line: str, wanted: str | None) -> None:
    found = hooked(line)
    assert found.config.get("communication_data_type") == wanted
    assert "comm_hook" not in found.text.partition("def main")[2]
    assert not found.todos


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "if args.half:\n    model.register_comm_hook(None, hooks.fp16_compress_hook)",
            '"fp16" if args.half else None',
        ),
        (
            (
                "if args.half:\n    model.register_comm_hook(None, hooks.fp16_compress_hook)\n"
                "else:\n    model.register_comm_hook(None, hooks.bf16_compress_hook)"
            ),
            '"fp16" if args.half else "bf16"',
        ),
        (
            (
                "hook = hooks.bf16_compress_hook if args.half else hooks.allreduce_hook\n"
                "model.register_comm_hook(None, hook)"
            ),
            '"bf16" if args.half else None',
        ),
    ],
)
def test_the_format_follows_what_decided_about_the_hook(lines: str, said: str) -> None:
    assert f"communication_data_type={said}" in hooked(lines).text


def test_a_group_of_its_own_and_a_fused_optimizer_are_marked() -> None:
    hooked("model.register_comm_hook(dist.new_group([0, 1]), hooks.fp16_compress_hook)").said("MG309", Kind.TODO)
    hooked("model._register_fused_optim(torch.optim.AdamW, lr=1e-3)").said("MG517", Kind.TODO)
