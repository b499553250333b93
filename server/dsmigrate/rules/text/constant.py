"""DS022: NaN and the infinities."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._shared import Meant, strings
from dsmigrate.rules.types._shared import judge


@rule(
    "DS022",
    "not-a-number",
    summary="NaN or an infinity: a string for DeepSpeed, a float for Python's json, and no value for either.",
    why=(
        "Hjson does not know `NaN` and `Infinity` and reads the text, to the end of the line, as a string. Python's"
        " `json`, which Transformers and Accelerate use, makes a float of it. No key of DeepSpeed has a meaning for"
        " one."
    ),
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig", "deepspeed/runtime/precision_config.py:DeepSpeedFP16Config"),
    examples=(
        Example('{\n  "train_batch_size": 8,\n  "gradient_clipping": «Infinity»\n}\n', accepted=False),
        Example(
            '{\n  "train_batch_size": 8,\n  "fp16": {\n    "enabled": true,\n    "loss_scale": «NaN»\n  }\n}\n',
            accepted=False,
        ),
        Example('{\n  "train_batch_size": 8,\n  "gradient_clipping": 0.0,\n  "wandb": {"group": "NaN hunt"}\n}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each constant."""
    for entry, node in strings(context, Meant.CONSTANT):
        verdict = judge(context, entry)
        kind = say("float") if context.consumer.reads_strict_json else say("string")
        needs = (
            say("; {path} has to be {wanted}", path=shown(entry.path), wanted=verdict.wanted)
            if verdict is not None
            else ""
        )
        sure = verdict is not None and not context.consumer.reads_strict_json
        yield context.finding(
            entry,
            say(
                "`{value}` is no JSON and reaches DeepSpeed as a {kind}{needs}",
                value=node.value(),
                kind=kind,
                needs=needs,
            ),
            severity=verdict.severity if verdict is not None and sure else None,
            effect=verdict.effect if verdict is not None and sure else None,
        )
