"""DS104: a comment written as a key, in a section that rejects unknown keys."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.keys._shared import is_comment, refuses, unknown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS104",
    "comment-key-rejected",
    summary="A comment written as a key, in a section where DeepSpeed rejects every unknown key.",
    why=(
        "At the top level and in open sections DeepSpeed never looks at `_comment`. In `zero_optimization`, `fp16` and"
        " the other pydantic sections it is an unknown key like any other, and a `ValidationError`. Plain DeepSpeed"
        " reads comments: `#` and `//`."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config_utils.py:DeepSpeedConfigModel",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {«"_comment"»: "for 8 GPUs", "stage": 2}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
        ),
        Example('{"train_batch_size": 8, "_comment": "for 8 GPUs", "aio": {"_comment": "measured"}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each comment in a closed section."""
    for entry, section in unknown(context):
        if is_comment(entry.name) and refuses(context, section):
            yield context.finding(
                entry,
                say(
                    "DeepSpeed takes `{name}` for an unknown key of {path} and rejects the config; comments belong "
                    "to the top level",
                    name=entry.name,
                    path=shown(entry.path[:-1]),
                ),
                part="key",
                fixes=[context.remove(entry, say("Remove `{name}`", name=entry.name), safe=True)],
            )
