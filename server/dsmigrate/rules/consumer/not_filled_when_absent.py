"""DS816: `gradient_clipping` left out, which neither the Trainer nor Accelerate makes up for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Scalar
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say
from dsmigrate.rules.consumer._shared import AUTO
from dsmigrate.rules.consumer._stated import stated
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule

_CLIPPING = {
    Consumer.TRANSFORMERS: mark("whatever `max_grad_norm` says"),
    Consumer.ACCELERATE: mark("and `accelerator.clip_grad_norm_` clips nothing under DeepSpeed"),
}

_ADDS_SINCE = "0.30.0"
"""The release of Accelerate since which its YAML has "auto" where it leaves the key out."""


@rule(
    "DS816",
    "absent-is-not-filled",
    summary="`gradient_clipping` left out: the consumer fills only what is there, so that DeepSpeed's default counts.",
    why='Only `"auto"` is replaced, an absent key is not. Without `gradient_clipping` DeepSpeed clips at its own '
    "default (1.0 since 0.19.3, no clipping before), whatever `TrainingArguments.max_grad_norm` says; under "
    'Accelerate `clip_grad_norm_` only returns the norm. The YAML of `accelerate launch` has the "auto" where '
    "it leaves the key out, since Accelerate 0.30.0.",
    severity=Severity.INFO,
    effect=Effect.OVERRIDDEN,
    source=(
        "transformers/integrations/deepspeed.py:HfTrainerDeepSpeedConfig.fill_match",
        "accelerate/accelerator.py:Accelerator.clip_grad_norm_",
    ),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("gradient_clipping",),
    pains=(22,),
    training=True,
    examples=(
        Example(
            '«{»"train_batch_size": "auto", "zero_optimization": {"stage": 2}}',
            fixed='{"train_batch_size": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '«{»"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": 0.0}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8}'),
        Example(
            '«{»"train_batch_size": "auto", "zero_optimization": {"stage": 2}}',
            fixed='{"train_batch_size": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"max_grad_norm": "0.3"}),)),
        ),
        Example(
            '{"train_batch_size": "auto", "zero_optimization": {"stage": 2}}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"max_grad_norm": "1"}),)),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the key is absent."""
    entry = context.entry("gradient_clipping")
    added = entry is not None and _is_added(context, entry)
    adds = context.facts.accelerate is None or order(context.facts.accelerate) >= order(_ADDS_SINCE)
    if entry is not None and added and adds and context.consumer is Consumer.ACCELERATE:
        yield context.finding(
            entry,
            say(
                "without `gradient_clipping` DeepSpeed clips at 1.0, or at `max_grad_norm` of the Trainer; "
                "`accelerator.clip_grad_norm_` clips nothing, and 0.0 switches it off"
            ),
            part="member",
            severity=Severity.HINT if context.facts.clips is False else None,
        )
    if not context.entries or (entry is not None and (adds or not added)):
        return
    auto, default = (
        context.known.auto("gradient_clipping", context.consumer),
        context.known.default("gradient_clipping"),
    )
    given = [*stated(context, "gradient_clipping")] if context.consumer is Consumer.TRANSFORMERS else []
    wrong = next((one for one in given if one.value != default), None)
    if given and wrong is None:
        return
    same = wrong is None and (bool(context.facts.arguments) or (auto is not None and auto.usual == default))
    default = json_text(default)
    limit = say("clips at {default}", default=default) if default != "0.0" else say("does not clip")
    yield context.finding(
        entry or ("gradient_clipping",),
        say(
            "without `gradient_clipping` DeepSpeed {limit}, {clipping}",
            limit=limit,
            clipping=say("and not at {said}", said=wrong.said)
            if wrong is not None
            else say(_CLIPPING[context.consumer]),
        ),
        severity=Severity.HINT if same else Severity.WARNING if wrong else None,
        fixes=[]
        if entry
        else [context.insert(("gradient_clipping",), "auto", say('Add `gradient_clipping: "auto"`'), safe=False)],
    )


def _is_added(context: Context, entry: Entry) -> bool:
    """Return whether Accelerate adds the "auto" of a key, as for one that its YAML leaves out."""
    node = entry.node
    return (
        isinstance(node, Scalar)
        and node.value() == AUTO
        and context.document.text[node.start : node.end].strip("\"'") != AUTO
    )
