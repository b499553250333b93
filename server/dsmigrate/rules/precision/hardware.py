"""DS304: a format that the GPU does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.precision._shared import BF16, FP16, bf16_is_on, bf16_path
from dsmigrate.rules.registry import rule

_NO_BF16 = re.compile(r"\b(v100|t4|titan v|titan rtx|(?:rtx )?20[678]0|(?:gtx )?16[56]0|quadro rtx|turing|volta)")
_NO_FP16 = re.compile(
    r"\b(p100|p40|p4|m40|m60|k80|k40|titan xp?|(?:gtx )?(?:9[5-8]0|10[5-8]0)|pascal|maxwell|kepler)(?!\w)"
)


def lacks_bf16(hardware: str) -> bool:
    """Return whether a GPU that a text names has no bf16."""
    return any(pattern.search(hardware.lower()) for pattern in (_NO_BF16, _NO_FP16))


@rule(
    "DS304",
    "format-without-hardware",
    summary="bf16 on a GPU older than Ampere, or fp16 on one older than Volta.",
    why="Volta and Turing (V100, T4, RTX 20) have no bf16 units: torch emulates it and answers that it is "
    "supported, so DeepSpeed starts and is slow (older torch releases answer no, and DeepSpeed stops). GPUs before "
    "Volta have neither format: `Type fp16 is not supported on your device`. Told only where the hardware is known "
    "from the settings.",
    severity=Severity.WARNING,
    effect=Effect.SLOW,
    source=(
        "deepspeed/runtime/engine.py:_do_sanity_check",
        "deepspeed/accelerator/cuda_accelerator.py:is_bf16_supported",
        "https://github.com/deepspeedai/DeepSpeed/issues/6723",
    ),
    keys=(BF16, FP16),
    pains=(33,),
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": «true»}}\n',
            facts=Facts(hardware="v100"),
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": «true»}, "zero_optimization": {"stage": 1}}\n',
            facts=Facts(hardware="p100"),
            accepted=None,  # takes that GPU
        ),
        Example('{"train_batch_size": 1, "bf16": {"enabled": true}}\n', facts=Facts(hardware="a100")),
        Example('{"train_batch_size": 1, "bf16": {"enabled": true}}\n', facts=Facts(hardware="rtx 4080")),
        Example('{"train_batch_size": 1, "bf16": {"enabled": true}}\n'),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 1}}\n',
            facts=Facts(hardware="v100"),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a mode that the known hardware lacks."""
    gpu = (context.facts.hardware or "").lower()
    ancient = _NO_FP16.search(gpu) is not None
    if bf16_is_on(context) and lacks_bf16(gpu):
        yield context.finding(
            bf16_path(context, "enabled"),
            say("{gpu} has no bf16: torch emulates it slowly, or DeepSpeed stops with an older torch; use ", gpu=gpu)
            + ("fp32" if ancient else "fp16"),
        )
    if context.is_on(FP16) and ancient:
        yield context.finding(
            FP16,
            say("{gpu} is older than Volta: DeepSpeed stops with `Type fp16 is not supported on your device`", gpu=gpu),
            severity=Severity.ERROR,
            effect=Effect.REJECTED,
        )
