"""DS260: summed gradients where DeepSpeed can only average."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import sums
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import zenflow_is_on
from dsmigrate.rules.registry import rule

_KEY = "gradient_allreduce_op"


@rule(
    "DS260",
    "summed-gradients",
    summary='`gradient_allreduce_op` "sum" with ZeRO 3, ZenFlow or DeepCompile.',
    why="These three always average over the ranks. DeepSpeed refuses the combination when the config is read.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_do_error_check",),
    since="0.19.6",
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "gradient_allreduce_op": «"sum"», "zero_optimization": {"stage": 3}}\n',
            fixed='{"train_batch_size": 1, "gradient_allreduce_op": "mean", "zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "gradient_allreduce_op": «"SUM"», "compile": {"deepcompile": true}}\n',
            fixed='{"train_batch_size": 1, "gradient_allreduce_op": "mean", "compile": {"deepcompile": true}}\n',
        ),
        Example('{"train_batch_size": 1, "gradient_allreduce_op": "sum", "zero_optimization": {"stage": 2}}\n'),
        Example('{"train_batch_size": 1, "gradient_allreduce_op": "mean", "zero_optimization": {"stage": 3}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield one finding that names what excludes the sum."""
    if not sums(context):
        return
    others = [
        name
        for name, there in (
            (say("ZeRO 3"), context.stage == 3),
            ("ZenFlow", zenflow_is_on(context)),
            ("DeepCompile", bool(context.is_on("compile.deepcompile"))),
        )
        if there
    ]
    if others:
        yield context.finding(
            _KEY,
            say(
                "DeepSpeed rejects a sum together with {others}, which can only average",
                others=say(" and ").join(others),
            ),
            fixes=[context.replace(_KEY, "mean", say('Replace it by "mean"'), safe=False)],
        )
