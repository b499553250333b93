"""DS405: a switched-off gradient norm that something needs."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import edits
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZENFLOW, ZERO, is_bf16_optimizer, offloads_optimizer, section, switched_off

_KEY = f"{ZERO}.compute_grad_norm"
_CLIPPING = "gradient_clipping"


@rule(
    "DS405",
    "grad-norm-needed",
    summary="`compute_grad_norm` false where the stage, clipping, offload or ZenFlow needs the norm.",
    why="The key works at stage 1 and 2 only, and only while nothing asks for the norm. `gradient_clipping` asks "
    "for it, and "
    "is 1.0 unless the file says otherwise, so that the key alone always stops the engine.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/config.py:compute_grad_norm_valid",
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",
        "deepspeed/runtime/engine.py:_do_optimizer_sanity_check",
    ),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 1, "compute_grad_norm": «false»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 1, "compute_grad_norm": false}, '
            '"gradient_clipping": 0.0}\n',
        ),
        Example(
            '{"train_batch_size": 1, "gradient_clipping": 0, "zero_optimization": {"stage": 3, "compute_grad_norm": '
            "«false»}}\n",
            fixed='{"train_batch_size": 1, "gradient_clipping": 0, "zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "gradient_clipping": 0, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "compute_grad_norm": '
            "«false»}}\n",
            fixed='{"train_batch_size": 1, "gradient_clipping": 0, "optimizer": {"type": "AdamW", "params": {"lr": '
            "0.001}}, "
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "gradient_clipping": 0, "bf16": {"enabled": true}, "data_types": '
            '{"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1, "compute_grad_norm": false}}\n',
            accepted=False,  # DS342 tells it where it speaks of that optimizer
        ),
        Example(
            '{"train_batch_size": 1, "gradient_clipping": 0.0, "zero_optimization": {"stage": 2, '
            '"compute_grad_norm": false}}\n'
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 3, "compute_grad_norm": true}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding with the first thing that needs the norm."""
    entry = switched_off(context, _KEY)
    if entry is None or context.stage is None or is_bf16_optimizer(context):
        return
    reason, related = _reason(context)
    if reason is None:
        return
    fixes = [context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=False)]
    if related == _CLIPPING:
        edit = edits.replace if context.has(_CLIPPING) else edits.insert
        where = context.path_of(_CLIPPING)
        fixes.insert(
            0,
            context.fix(say("Switch clipping off"), lambda path: edit(context.document, path, 0.0), where, safe=False),
        )
    yield context.finding(
        entry,
        say("false is refused {reason}", reason=reason),
        fixes=fixes,
        related=[(related, say("needs the norm"))] if related and context.has(related) else [],
    )


def _reason(context: Context) -> tuple[str | None, str | None]:
    if context.stage not in {1, 2}:
        return say("at ZeRO stage {stage}: only stage 1 and 2 can do without the norm", stage=context.stage), None
    value = context.value(_CLIPPING)
    clipping = context.number(_CLIPPING)
    if value is not UNKNOWN and clipping is not None and clipping > 0:
        left_out = "" if context.has(_CLIPPING) else say(", the default")
        return say(
            "because `gradient_clipping` is {clipping}{left_out}", clipping=json_text(clipping), left_out=left_out
        ), _CLIPPING
    if section(context, ZENFLOW) is not None:
        return say("together with ZenFlow"), ZENFLOW
    if offloads_optimizer(context):
        return say("together with optimizer offload"), f"{ZERO}.offload_optimizer"
    return None, None
