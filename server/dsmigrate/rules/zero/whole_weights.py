"""DS445: stage 3 without a way to write full weights."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, ZERO, section

_NAME = "stage3_gather_16bit_weights_on_model_save"
_KEY = f"{ZERO}.{_NAME}"
_OLD = f"{ZERO}.stage3_gather_fp16_weights_on_model_save"


@rule(
    "DS445",
    "no-whole-weights",
    summary="Stage 3 without `stage3_gather_16bit_weights_on_model_save`, which `save_16bit_model` needs.",
    why="At stage 3 a state dict holds tensors of shape (0,). `engine.save_16bit_model()`, and with it the save "
    "functions of Transformers and Accelerate, gather the weights only if this key is on; otherwise they write nothing "
    "usable, and the weights have to be made from a checkpoint with `zero_to_fp32.py`. For plain DeepSpeed an explicit "
    "`false` is taken as meant.",
    severity=Severity.INFO,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/engine.py:save_16bit_model", "https://github.com/deepspeedai/DeepSpeed/issues/2413"),
    keys=(_KEY,),
    pains=(7,),
    training=True,
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": «3»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": '
            '{"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, "gather_16bit_weights_on_model_save": false}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, '
            '"stage3_gather_16bit_weights_on_model_save": «false»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3, '
            '"stage3_gather_16bit_weights_on_model_save": true}}\n',
            consumer=Consumer.ACCELERATE,
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at stage 3 of a file that does not say whether to gather."""
    if section(context, ZERO) is None or context.stage != 3:
        return
    if context.has(_KEY) or context.has(_OLD):
        if context.consumer is not Consumer.DEEPSPEED and context.is_on(_KEY) is False and not context.has(_OLD):
            yield context.finding(
                _KEY if _is_written(context) else STAGE,
                say(
                    "at stage 3 no full weights are written while `{key}` is false: `zero_to_fp32.py` makes them of a "
                    "checkpoint",
                    key=_NAME,
                ),
                fixes=[
                    context.replace(_KEY, value=True, title=say("Gather weights when a model is saved"), safe=False)
                ],
            )
        return
    if context.consumer is Consumer.DEEPSPEED:
        told = say(
            "at stage 3 `save_16bit_model` writes nothing without `stage3_gather_16bit_weights_on_model_save`, and "
            "`zero_to_fp32.py` makes full weights of a checkpoint"
        )
    else:
        told = say(
            "at stage 3 full weights are written only with `stage3_gather_16bit_weights_on_model_save`, "
            "which is false unless set"
        )
    target = (*context.path_of(ZERO), _NAME)
    yield context.finding(
        STAGE,
        told,
        fixes=[context.insert(target, True, say("Gather weights when a model is saved"), safe=False)],
    )


def _is_written(context: Context) -> bool:
    """Return whether the text says the key; Accelerate adds it to what its YAML says."""
    entry = context.entry(_KEY)
    node = entry.node if entry is not None else None
    return node is not None and context.document.text[node.start : node.end].lower() == "false"
