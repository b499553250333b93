"""DS458: ZenFlow with an optimizer other than plain Adam."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZENFLOW, is_bf16_optimizer, offloads_optimizer, section

_EXTRA = ("torch_adam", "adam_w_mode", "fp32_optimizer_states", "bias_correction", "adamw_mode")
"""What DeepSpeed's Adam takes and the selective optimizer, a subclass of torch's AdamW, does not."""
_ZERO = (
    '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 1}}}\n'
)


@rule(
    "DS458",
    "zenflow-optimizer",
    summary="ZenFlow with an optimizer other than Adam and AdamW, or with parameters that its own AdamW does not take.",
    why="At stage 1 and 2 ZenFlow builds a second AdamW for the selected columns from `optimizer.params` as they "
    "stand, and calls the CPU "
    "optimizer in a way that only `DeepSpeedCPUAdam` knows. Without `params`, which an optimizer of the script leaves "
    "out, or with a parameter that torch's AdamW does not have, the engine is not built; any other optimizer fails "
    "when it first updates the weights.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/zenflow/zenflow_stage_1_and_2.py:ZenFlowZeroOptimizer",),
    keys=(ZENFLOW, "optimizer.type"),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_allow_untested_optimizer": true, '
            '"optimizer": {"type": «"SGD"», "params": {"lr": 0.001}}, ' + _ZERO,
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001, «"torch_adam"»: false}}, '
            + _ZERO,
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, ' + _ZERO,
        ),
        Example(
            '{"train_batch_size": 1, '
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, «"zenflow"»: {}}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {«"type": "AdamW"»}, ' + _ZERO,
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {}}, ' + _ZERO,
        ),
        Example('{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, ' + _ZERO),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the type, or at each parameter too many."""
    if section(context, ZENFLOW) is None or not context.stage or not offloads_optimizer(context):
        return
    kind = context.type_of("optimizer")
    entry = section(context, ZENFLOW)
    if kind is None:
        if entry is not None and context.stage != 3 and context.raw("optimizer.type") in (MISSING, None):
            yield context.finding(
                entry,
                say(
                    "ZenFlow at stage {stage} needs an `optimizer` in this file, of type Adam or AdamW and with "
                    "`params`: one that the script makes does not do",
                    stage=context.stage,
                ),
                part="key",
                effect=Effect.CRASH if is_bf16_optimizer(context) else None,
            )
        return
    if kind.name.lower() not in {"adam", "adamw"}:
        yield context.finding(
            "optimizer.type",
            say(
                "ZenFlow works with Adam and AdamW only; {kind_name} fails when it first updates the weights on "
                "the CPU",
                kind_name=kind.name,
            ),
            effect=Effect.CRASH,
        )
        return
    if context.stage == 3:
        return  # there it is built from the groups of the CPU optimizer
    node = context.document.node_at(("optimizer", "params"))
    if not isinstance(node, Object):
        if context.has("optimizer.params"):
            return
        yield context.finding(
            "optimizer.type",
            say("ZenFlow needs `optimizer.params`, be they empty"),
            part="member",
            fixes=[context.insert(("optimizer", "params"), {}, say("Add empty `params`"), safe=True)],
        )
        return
    for name in _EXTRA:
        where = ("optimizer", "params", name)
        if context.document.node_at(where) is not None:
            yield context.finding(
                where,
                say("ZenFlow hands `{name}` to torch's AdamW, which does not take it", name=name),
                part="key",
                fixes=[context.remove(where, say("Remove `{name}`", name=name), safe=False)],
            )
