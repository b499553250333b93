"""DS454: ZenFlow that decides its update interval itself."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZENFLOW, place, section

_KEY = f"{ZENFLOW}.update_interval"
_HEAD = '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
_OFFLOAD = '{"stage": 2, "offload_optimizer": {"device": "cpu"}, '


@rule(
    "DS454",
    "zenflow-auto-update",
    summary='ZenFlow with `update_interval` "auto", its default, which turns weights into NaN.',
    why='"auto" sets the gradient accumulation of the engine to 0, and `engine.backward(loss)` divides the loss by '
    "it: the loss "
    "is inf and the weights are NaN after the first micro-batch. Only `engine.backward(loss, scale_wrt_gas=False)` "
    "works.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/zenflow/engine.py:configure_zenflow", "deepspeed/runtime/engine.py:backward"),
    keys=(_KEY,),
    examples=(
        Example(
            _HEAD + _OFFLOAD + '«"zenflow"»: {"topk_ratio": 0.1}}}\n',
            fixed=_HEAD + _OFFLOAD + '"zenflow": {"topk_ratio": 0.1, "update_interval": 4}}}\n',
        ),
        Example(
            _HEAD + _OFFLOAD + '"zenflow": {"update_interval": «"auto"»}}}\n',
            fixed=_HEAD + _OFFLOAD + '"zenflow": {"update_interval": 4}}}\n',
        ),
        Example(_HEAD + _OFFLOAD + '"zenflow": {"update_interval": 4}}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the interval, or at the section that leaves it out."""
    entry = section(context, ZENFLOW)
    if entry is None or context.stage == 0 or context.value(_KEY) != "auto":
        return
    given = context.has(_KEY)
    yield context.finding(
        place(context, _KEY, ZENFLOW),
        say(
            "`update_interval` {word}auto{word_2} divides the loss by an accumulation of 0, so that weights become NaN",
            word="" if given else say("is "),
            word_2="" if given else say(" unless set, which"),
        ),
        part="value" if given else "key",
        fixes=[
            context.replace(_KEY, 4, say("Update every 4 micro-batches"), safe=False)
            if given
            else context.insert((*entry.path, "update_interval"), 4, say("Update every 4 micro-batches"), safe=False)
        ],
    )
