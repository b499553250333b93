"""DS346: name patterns that are no list."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import given
from dsmigrate.rules.registry import rule

_KEY = "data_types.keep_in_fp32_modules"


@rule(
    "DS346",
    "keep-in-fp32-modules",
    summary='`data_types.keep_in_fp32_modules` is neither "auto" nor a list.',
    why='One pattern has to stand in a list as well: any text but `"auto"` is a `DeepSpeedConfigError` when the '
    "config is read.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_initialize_params",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "data_types": {"keep_in_fp32_modules": «"norm"»}}\n',
            fixed='{"train_batch_size": 1, "data_types": {"keep_in_fp32_modules": ["norm"]}}\n',
        ),
        Example('{"train_batch_size": 1, "data_types": {"keep_in_fp32_modules": ["norm", "*.inv_freq"]}}\n'),
        Example('{"train_batch_size": 1, "data_types": {"keep_in_fp32_modules": "auto"}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a text that is not "auto"."""
    value = context.raw(_KEY)
    if given(context, _KEY) is not None and isinstance(value, str) and value != "auto":
        yield context.finding(
            _KEY,
            say('DeepSpeed rejects the text {value}: it takes "auto" or a list of name patterns', value=f"{value!r}"),
            fixes=[context.replace(_KEY, [value], say("Put it into a list"), safe=True)],
        )
