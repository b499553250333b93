"""DS966: a model whose states do not fit on the GPUs with this config."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.hints._memory import in_gigabytes
from dsmigrate.rules.model import Effect, Example, Facts, Finding, ModelFacts, Severity
from dsmigrate.rules.registry import rule

_STAGE = "zero_optimization.stage"


@rule(
    "DS966",
    "does-not-fit",
    summary="States and buffers of the model need more than the memory of a GPU.",
    why="What a GPU holds besides activations follows from the config, the model and the number of processes. Where "
    "that alone is more than there is, training stops with an out-of-memory error whatever the micro-batch. "
    "`dsmigrate memory` shows the parts, `dsmigrate recommend` what fits. Told if the model, the number of processes "
    "and the memory of a GPU are known.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/zero/stage_1_and_2.py:estimate_zero2_model_states_mem_needs",),
    keys=(_STAGE,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «2»}}',
            facts=Facts(gpu_memory=24 << 30, model=ModelFacts("config.json", (), held=lambda _: 30 << 30)),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            facts=Facts(gpu_memory=80 << 30, model=ModelFacts("config.json", (), held=lambda _: 30 << 30)),
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', facts=Facts(gpu_memory=24 << 30)),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the stage."""
    model, memory = context.facts.model, context.facts.gpu_memory
    held = model.held(context) if model is not None and model.held is not None and memory is not None else None
    if model is None or memory is None or held is None or held <= memory:
        return
    yield context.finding(
        _STAGE,
        say(
            "{model} needs about {held} of each GPU before any activation, which has {memory}: `dsmigrate recommend` "
            "says what fits",
            model=model.name,
            held=in_gigabytes(held),
            memory=in_gigabytes(memory),
        ),
    )
