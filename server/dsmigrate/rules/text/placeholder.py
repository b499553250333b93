"""DS020: a placeholder that nobody filled in."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._shared import Meant, strings
from dsmigrate.rules.types._shared import judge
from dsmigrate.rules.types._values import shown_value


@rule(
    "DS020",
    "placeholder",
    summary="A placeholder of a shell script or a template stands where a value belongs.",
    why=(
        "DeepSpeed fills in nothing: no environment variables, no templates. Hjson reads `CONFIG_BATCH_SIZE,` without"
        " quotes as a string, comma included, so the file loads and fails later, or is misread. If a script writes the"
        " real file, check that one."
    ),
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig",),
    examples=(
        Example('{\n  "train_batch_size": «CONFIG_BATCH_SIZE,»\n  "steps_per_print": 10\n}\n', accepted=False),
        Example('{"train_batch_size": 8, "gradient_clipping": «"${CLIP}"»}', accepted=False),
        Example('{"train_batch_size": «"<fill>"»}', accepted=False),
        Example('{"wandb": {"project": "{{ project }}"}, "train_batch_size": «"{{ batch }}"»}', accepted=False),
        Example('{"train_batch_size": 8, "wandb": {"enabled": false, "project": «"{{ project }}"»}}'),
        Example(
            '{\n  "train_batch_size": «GB_SIZE,»\n  "data_efficiency": {"data_sampling": {"curriculum_learning": '
            '{"curriculum_metrics": {"CL_NAME": {"difficulty_type": "CL_1st_TYPE"}}}}}\n}\n',
            accepted=False,
        ),
        Example('{"train_batch_size": 8, "wandb": {"enabled": false, "project": "LARGE_RUN", "group": "a<b"}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield one finding for the placeholders of a file, at the first of those that DeepSpeed minds most."""
    found = [(entry, node, judge(context, entry)) for entry, node in strings(context, Meant.PLACEHOLDER)]
    if not found:
        return
    order = [*Severity]
    entry, node, verdict = min(
        found, key=lambda one: order.index(Severity.WARNING if one[2] is None else one[2].severity)
    )
    comes = say("takes it as a string")
    if verdict is not None:
        comes = say("takes it as a string, where {wanted} belongs", wanted=verdict.wanted)
    others = [(other, one) for other, one, _ in found if other is not entry]
    more = say("; {count} more placeholder{en_s}", count=len(others), en_s="" if len(others) == 1 else "s")
    yield context.finding(
        entry,
        say(
            "{value} is a placeholder that nobody filled in; for {path} DeepSpeed {comes}",
            value=shown_value(node.value()),
            path=shown(entry.path),
            comes=comes,
        )
        + (more if others else ""),
        severity=None if verdict is None else verdict.severity,
        effect=None if verdict is None else verdict.effect,
        related=[(other, shown_value(one.value())) for other, one in others],
    )
