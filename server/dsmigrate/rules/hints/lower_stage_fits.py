"""DS962: stage 3 for a model that fits at stage 2."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.hints._memory import fits, in_gigabytes, state_bytes
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS962",
    "lower-stage-fits",
    summary="ZeRO stage 3 although the training state fits into half of the GPU memory at stage 2.",
    why="Stage 3 gathers the weights in the forward and again in the backward pass of every micro-batch, which "
    "stage 2 does once per optimizer step. It pays where the weights themselves do not fit. Told only when "
    "model size, world size and GPU memory are given.",
    severity=Severity.HINT,
    effect=Effect.SLOW,
    source=("deepspeed/runtime/zero/stage_1_and_2.py:estimate_zero2_model_states_mem_needs",),
    keys=("zero_optimization.stage",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «3»}}',
            facts=Facts(world_size=8, gpu_memory=80_000_000_000, parameters=1_000_000_000),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            facts=Facts(world_size=8, gpu_memory=80_000_000_000, parameters=13_000_000_000),
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the stage when nothing is offloaded and stage 2 has room."""
    if context.stage != 3 or not context.has("zero_optimization.stage") or not fits(context.facts, 2):
        return
    if any(context.device(section) != "none" for section in ("offload_optimizer", "offload_param")):
        return
    needed, memory = state_bytes(context.facts, 2) or 0, context.facts.gpu_memory or 0
    yield context.finding(
        "zero_optimization.stage",
        say(
            "Stage 2 holds this model in about {in_gigabytes} of {in_gigabytes_2} on each GPU, and gathers "
            "the weights once per optimizer step instead of twice per micro-batch",
            in_gigabytes=in_gigabytes(needed),
            in_gigabytes_2=in_gigabytes(memory),
        ),
    )
