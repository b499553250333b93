"""DS950: a key left out whose default moved between the release one comes from and the target."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING, Consumer, Key, knowledge
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import is_effective
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS950",
    "default-changed",
    summary="A key that the file leaves out, and whose default is another one than in the release one comes from.",
    why="An absent key means what the installed release makes of it, and some defaults moved in a way that changes "
    "training: `gradient_clipping` from 0.0 to 1.0 in 0.19.3, `pin_memory` of both offload sections from false "
    "to true in 0.19.5. Told only when the release one comes from is given.",
    severity=Severity.INFO,
    effect=Effect.CHANGED,
    source=("deepspeed/runtime/constants.py:GRADIENT_CLIPPING_DEFAULT", "deepspeed/runtime/zero/offload_config.py"),
    keys=("gradient_clipping", "zero_optimization.offload_optimizer.pin_memory"),
    examples=(
        Example(
            '«{»"train_batch_size": 8}',
            fixed='{"train_batch_size": 8, "gradient_clipping": 0.0}',
            facts=Facts(before="0.18.9"),
        ),
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 1.0, "zero_optimization": '
            '{"stage": 2, «"offload_optimizer"»: {"device": "cpu"}}}',
            fixed='{"train_batch_size": 8, "gradient_clipping": 1.0, "zero_optimization": '
            '{"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": false}}}',
            facts=Facts(before="0.19.4"),
        ),
        Example('{"train_batch_size": 8}'),
        Example('{"train_batch_size": 8}', facts=Facts(before="0.19.5")),
        Example('{"train_batch_size": 8, "gradient_clipping": 0.0}', facts=Facts(before="0.18.9")),
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 1.0, "zero_optimization": '
            '{"stage": 2, "offload_optimizer": {"device": "none"}}}',
            facts=Facts(before="0.19.4"),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each such key that would do something, at the section that would hold it."""
    before = context.facts.before
    if before is None or context.root is None:
        return
    earlier = knowledge(before)
    for section in ("", *(entry.key.path for entry in context.entries if entry.key is not None)):
        for key in context.known.children(section):
            old = earlier.default(key.path)
            if old is MISSING or key.default is MISSING or old == key.default or not _counts(context, key):
                continue
            place = (*context.path_of(section), key.name) if section else (key.name,)
            yield context.finding(
                place,
                say(
                    "{place} is left out and means {default} in DeepSpeed {known_version}; in {earlier_version} it "
                    "meant {old}",
                    place=shown(place),
                    default=json_text(key.default),
                    known_version=context.known.version,
                    earlier_version=earlier.version,
                    old=json_text(old),
                ),
                fixes=[
                    None
                    if old is None and "null" not in key.type
                    else context.insert(
                        place,
                        old,
                        say(
                            "Write {old}, as in {earlier_version}", old=json_text(old), earlier_version=earlier.version
                        ),
                        safe=False,
                    )
                ],
            )


def _counts(context: Context, key: Key) -> bool:
    """Return whether a key is left out where it would have an effect."""
    if context.has(key.path) or key.is_section or key.alias_of is not None:
        return False
    overwritten = key.path == "steps_per_print" and context.consumer is not Consumer.DEEPSPEED
    return not overwritten and is_effective(context, key, tuple(key.path.split("."))) is True
