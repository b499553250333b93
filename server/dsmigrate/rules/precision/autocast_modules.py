"""DS356: module classes that cannot be imported."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import AUTOCAST, given
from dsmigrate.rules.registry import rule

_KEY = "torch_autocast.lower_precision_safe_modules"


@rule(
    "DS356",
    "autocast-modules",
    summary="`torch_autocast.lower_precision_safe_modules` that is no list of full class paths.",
    why="Each entry is split at its last dot and imported when the engine is built. A name without a module, such "
    "as `Linear`, fails there, and so does a bare string, of which every letter counts as an entry.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/torch_autocast.py:init_autocast_params",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16", '
            '"lower_precision_safe_modules": «"torch.nn.Linear"»}}\n',
            fixed='{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16", '
            '"lower_precision_safe_modules": ["torch.nn.Linear"]}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16", '
            '"lower_precision_safe_modules": ["torch.nn.Conv1d", «"Linear"»]}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16", '
            '"lower_precision_safe_modules": «{"Linear": true}»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16", '
            '"lower_precision_safe_modules": ["torch.nn.Linear"]}}\n'
        ),
        Example(
            '{"train_batch_size": 1, '
            '"torch_autocast": {"enabled": false, "lower_precision_safe_modules": ["Linear"]}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a bare string, or for each name without a module, where autocast is on."""
    entry = given(context, _KEY)
    if entry is None or given(context, AUTOCAST) is None or not context.is_on(AUTOCAST):
        return
    value = context.raw(_KEY)
    if isinstance(value, str) and value:
        yield context.finding(
            entry,
            say("DeepSpeed takes each letter of this string for a module class; it has to be a list of class paths"),
            fixes=[context.replace(entry, [value], say("Put it into a list"), safe=True)],
        )
    if isinstance(value, dict) and not all("." in name for name in value):
        yield context.finding(
            entry, say("DeepSpeed takes each key of this object for a module class; write a list of class paths")
        )
    if isinstance(value, list):
        for index, name in enumerate(value):
            if isinstance(name, str) and "." not in name:
                yield context.finding(
                    (*entry.path, index),
                    say(
                        "{name} cannot be imported: DeepSpeed needs the full path of a class, as in `torch.nn.Linear`",
                        name=f"{name!r}",
                    ),
                )
