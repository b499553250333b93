"""DS816: `gradient_clipping` left out, which neither the Trainer nor Accelerate makes up for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Scalar
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say
from dsmigrate.rules.consumer._shared import AUTO
from dsmigrate.rules.consumer._stated import Stated, scripted, stated
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.model import Accelerated, Arguments, Effect, Example, Facts, Finding, Fix, Said, Severity
from dsmigrate.rules.registry import rule

_CLIPPING = {
    Consumer.TRANSFORMERS: mark("whatever `max_grad_norm` says"),
    Consumer.ACCELERATE: mark("and `accelerator.clip_grad_norm_` clips nothing under DeepSpeed"),
}

_SAID = Said("train.py:9", "clip_grad_norm_(max_norm=0.5)", 0.5)
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
        Example(
            '«{»"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": 0.5}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated({"gradient_clipping": _SAID}),)),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the key is absent."""
    entry = context.entry("gradient_clipping")
    added = entry is not None and _is_added(context, entry)
    adds = context.facts.accelerate is None or order(context.facts.accelerate) >= order(_ADDS_SINCE)
    is_trainer = context.consumer is Consumer.TRANSFORMERS
    given = [*(stated if is_trainer else scripted)(context, "gradient_clipping")]
    if entry is not None and added and adds and not is_trainer and given:
        wrong = next((one for one in given if one.value != 1), None)
        if wrong is not None:
            yield context.finding(entry, _instead(wrong, "1.0"), part="member", severity=_severity(wrong))
    elif entry is not None and added and adds and not is_trainer:
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
    wrong = next((one for one in given if one.value != default), None)
    if given and wrong is None:
        return
    same = wrong is None and (bool(context.facts.arguments) or (auto is not None and auto.usual == default))
    yield context.finding(
        entry or ("gradient_clipping",),
        _instead(wrong, json_text(default))
        if wrong is not None
        else _clips(json_text(default), say(_CLIPPING[context.consumer])),
        severity=Severity.HINT if same else _severity(wrong),
        fixes=[] if entry else [_fix(context, None if is_trainer else wrong)],
    )


def _fix(context: Context, wrong: Stated | None) -> Fix:
    """Return the fix that adds the key: "auto", or the limit of a script, which Accelerate fills in nowhere."""
    value = "auto" if wrong is None else wrong.value
    title = say("Add `gradient_clipping: {value}`", value=json_text(value))
    return context.insert(("gradient_clipping",), value, title, safe=False)


def _severity(wrong: Stated | None) -> Severity | None:
    """Return how bad it is that a limit does not count: as the rule has it, if nobody gives the limit."""
    return None if wrong is None or wrong.is_default else Severity.WARNING


def _instead(wrong: Stated, default: str) -> str:
    said = (
        say("and {said} has no effect", said=wrong.said)
        if default == "0.0"
        else say("and not at {said}", said=wrong.said)
    )
    return _clips(default, said)


def _clips(default: str, clipping: str) -> str:
    limit = say("clips at {default}", default=default) if default != "0.0" else say("does not clip")
    return say("without `gradient_clipping` DeepSpeed {limit}, {clipping}", limit=limit, clipping=clipping)


def _is_added(context: Context, entry: Entry) -> bool:
    """Return whether Accelerate adds the "auto" of a key, as for one that its YAML leaves out."""
    node = entry.node
    return (
        isinstance(node, Scalar)
        and node.value() == AUTO
        and context.document.text[node.start : node.end].strip("\"'") != AUTO
    )
