"""DS400: settings of ZeRO in a section that leaves it off."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, ZERO, section

_TOLD = frozenset({"zenflow", "offload_optimizer", "cpu_offload", "offload_param", "cpu_offload_param"})
"""Keys with rules of their own for stage 0."""


@rule(
    "DS400",
    "zero-is-off",
    summary="ZeRO is configured, but its stage is 0, which is also the stage of a section that names none.",
    why="`stage` alone switches ZeRO on, and its default is 0. Buckets, `overlap_comm`, ZeRO++ and every `stage3_*` "
    "key are "
    "then accepted and never read: training runs as plain data parallelism, with all optimizer states on every GPU.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig", "deepspeed/runtime/engine.py:_configure_optimizer"),
    keys=(ZERO, STAGE),
    examples=(
        Example(
            '{"train_batch_size": 8, «"zero_optimization"»: {"overlap_comm": true, "reduce_bucket_size": 1e8}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"overlap_comm": true, "reduce_bucket_size": 1e8, '
            '"stage": 2}}\n',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": «0», "reduce_bucket_size": 1e8}}\n'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 0}}\n'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 0, "contiguous_gradients": true}}\n'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 1, "reduce_bucket_size": 1e8}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the section, at its stage if it names one."""
    if section(context, ZERO) is None or context.stage != 0 or context.raw(STAGE) == "auto":
        return
    idle = [entry for entry in context.entries if _is_idle(entry)]
    if not idle:
        return
    told = (
        shown(idle[0].name)
        if len(idle) == 1
        else say("{idle_name} and {number} more", idle_name=shown(idle[0].name), number=len(idle) - 1)
    )
    related = [(entry, say("not read")) for entry in idle]
    if context.has(STAGE):
        nothing = say("does nothing") if len(idle) == 1 else say("do nothing")
        told = say("stage 0 turns ZeRO off: {told} {nothing}", told=told, nothing=nothing)
        yield context.finding(STAGE, told, severity=Severity.INFO, related=related)
        return
    wanted = 3 if any(entry.key is not None and entry.key.stages == (3,) for entry in idle) else 2
    yield context.finding(
        ZERO,
        say("without `stage` ZeRO is off and nothing here is used, {told} included", told=told),
        part="key",
        fixes=[
            context.insert(
                (*context.path_of(ZERO), "stage"), wanted, say("Set `stage` to {wanted}", wanted=wanted), safe=False
            )
        ],
        related=related,
    )


def _is_idle(entry: Entry) -> bool:
    key, node = entry.key, entry.node
    if key is None or node is None or len(entry.path) != 2 or key.parent != ZERO:
        return False
    value = node.value()
    unset = value is None or (isinstance(value, bool) and (value == key.default or value is False))
    return bool(key.stages) and 0 not in key.stages and not unset and entry.name not in _TOLD
