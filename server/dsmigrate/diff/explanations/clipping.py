"""Gradient clipping: on, off, or at another norm."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say

_KEY = "gradient_clipping"


@explanation(
    "DF301",
    "gradient-clipping",
    summary="The norm that gradients are clipped to is another one, or clipping begins or ends.",
    why=(
        "DeepSpeed clips the global norm of all gradients before each optimizer step. A step whose gradients are below"
        " both norms is the same on both sides; any other one takes another size. An absent key clips at 1.0 since"
        " 0.19.3 and does not clip before; 0 and numbers below it never clip."
    ),
    source=(
        "deepspeed/runtime/constants.py:GRADIENT_CLIPPING_DEFAULT",
        "deepspeed/runtime/engine.py:gradient_clipping",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 1.0}',
            '{"train_batch_size": 8, "gradient_clipping": 0.5}',
            "Gradients are clipped to the norm 0.5 instead of 1.0",
            paths=("gradient_clipping",),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "gradient_clipping": 0}',
            "Gradients are no longer clipped (before: to the norm 1.0, the default)",
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 0.0}',
            '{"train_batch_size": 8}',
            "Gradients are clipped to the norm 1.0, the default; previously they were not",
            severity=Severity.WARNING,
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "gradient_clipping": 1}', ""),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8}',
            "Gradients are clipped to the norm 1.0, the default",
            old_version="0.19.2",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what happens to the norm where it changes."""
    change = pair.change(_KEY)
    before, after = pair.numbers(_KEY)
    if change is None or before is None or after is None:
        return
    was = f"{json_text(float(before))}{say(', the default') if change.old is MISSING else ''}"
    now = f"{json_text(float(after))}{say(', the default') if change.new is MISSING else ''}"
    if after <= 0 < before:
        message, brief = (
            say("Gradients are no longer clipped (before: to the norm {was})", was=was),
            say("no gradient clipping"),
        )
    elif before <= 0 < after:
        message, brief = (
            say("Gradients are clipped to the norm {now}; previously they were not", now=now),
            say("gradients clipped to {after}", after=json_text(after)),
        )
    elif before <= 0:
        return
    else:
        message = say("Gradients are clipped to the norm {now} instead of {was}", now=now, was=was)
        brief = say("clipping {before} → {after}", before=json_text(before), after=json_text(after))
    yield pair.says(_KEY, effects=(Effect.NUMERICS,), severity=Severity.WARNING, message=message, brief=brief)
