"""DS829: what a script with Accelerate says, where its config says otherwise and decides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dsmigrate.document import Scalar
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import AUTO
from dsmigrate.rules.consumer._stated import Stated, scripted
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Accelerated, Effect, Example, Facts, Finding, Said, Severity
from dsmigrate.rules.registry import rule

_STEPS = "gradient_accumulation_steps"
_CLIPPING = "gradient_clipping"
_PRECISION = "mixed_precision"
_KEYS = (
    _STEPS,
    _CLIPPING,
    "optimizer.params.lr",
    "optimizer.params.weight_decay",
    "scheduler.params.warmup_num_steps",
)
_SECTIONS = {"fp16": "fp16", "bf16": "bf16", "fp8": "bf16"}
"""The section of each mixed precision."""
_FILLED = 1.0
"""What Accelerate puts in the place of "auto" for the clipping."""
_HEAD = '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}, '
_BF16 = Facts(
    accelerated=(Accelerated({_PRECISION: Said("train.py:9", "Accelerator(mixed_precision='bf16')", "bf16")}),)
)


@rule(
    "DS829",
    "script-overridden",
    summary="The config decides about something that the script says otherwise to `Accelerator` or `clip_grad_norm_`.",
    why="Accelerate fills only what the config leaves open. Accumulation, clipping, and the parameters of an "
    "optimizer or schedule in the config are those of the config: under DeepSpeed `accelerator.clip_grad_norm_` "
    "clips nothing, and `clip_grad_value_` raises an error. Precision: a section of the config file wins, and the"
    " other half precision in the script raises ValueError; `mixed_precision` in the YAML of `accelerate launch` "
    "counts only if the script gives `Accelerator` none. The script is the one that a launch line starts with the"
    " config, else the only one of the project that makes an `Accelerator`, or one that is named with the config."
    " Options count with the value of the launch line, else with their default.",
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=(
        "accelerate/accelerator.py:Accelerator._prepare_deepspeed",
        "accelerate/accelerator.py:Accelerator.clip_grad_norm_",
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.set_mixed_precision",
    ),
    consumers=(Consumer.ACCELERATE,),
    keys=(_STEPS, _CLIPPING, "fp16.enabled", "bf16.enabled"),
    training=True,
    examples=(
        Example(
            _HEAD + '"gradient_accumulation_steps": «8»}',
            fixed=_HEAD + '"gradient_accumulation_steps": "auto"}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated({_STEPS: Said("train.py:9", f"Accelerator({_STEPS}=4)", 4)}),)),
        ),
        Example(
            _HEAD + '"gradient_accumulation_steps": 8}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated({_STEPS: Said("train.py:9", f"Accelerator({_STEPS}=8)", 8)}),)),
        ),
        Example(
            _HEAD + '"gradient_clipping": «"auto"»}',
            fixed=_HEAD + '"gradient_clipping": 0.5}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(
                accelerated=(Accelerated({_CLIPPING: Said("train.py:40", "clip_grad_norm_(max_norm=0.5)", 0.5)}),)
            ),
        ),
        Example(_HEAD + '"fp16": {"enabled": «true»}}', consumer=Consumer.ACCELERATE, facts=_BF16),
        Example(_HEAD + '"bf16": {"enabled": «false»}}', consumer=Consumer.ACCELERATE, facts=_BF16),
        Example(_HEAD + '"bf16": {"enabled": true}}', consumer=Consumer.ACCELERATE, facts=_BF16),
        Example(
            "«{»" + _HEAD[1:].rstrip(", ") + "}",
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated(clips_by_value="train.py:40"),)),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key that the script says otherwise."""
    if context.root is None or not context.facts.accelerated:
        return
    for key in _KEYS:
        entry = context.entry(key)
        if entry is not None and isinstance(entry.node, Scalar) and not _is_added(context, entry):
            yield from _of_key(context, entry, key)
    yield from _of_precision(context)
    by_value = next((one.clips_by_value for one in context.facts.accelerated if one.clips_by_value), "")
    if by_value:
        yield context.finding(
            (),
            say(
                "`clip_grad_value_` ({place}) raises an error under DeepSpeed: use `gradient_clipping`", place=by_value
            ),
            severity=Severity.ERROR,
            effect=Effect.CRASH,
        )


def _of_key(context: Context, entry: Entry, key: str) -> Iterator[Finding]:
    value = context.raw(key)
    if key == _STEPS and value == AUTO and context.facts.launched:
        if any(one.reads_steps for one in context.facts.accelerated):
            yield context.finding(
                entry,
                say('`Accelerator` raises ValueError at "auto" in this file: leave `{key}` out', key=key),
                severity=Severity.ERROR,
                effect=Effect.REJECTED,
            )
        return
    counts = _FILLED if key == _CLIPPING and value == AUTO else value
    if isinstance(counts, bool) or not isinstance(counts, (int, float)):
        return
    wrong = next((one for one in scripted(context, key) if one.words and one.value != counts), None)
    if wrong is None:
        return
    better = wrong.value if key == _CLIPPING else AUTO
    title = say("Write {value}", value=json_text(better))
    yield context.finding(
        entry,
        _counts(f"{shown(entry.path)} {json_text(counts)}", wrong),
        severity=Severity.INFO if wrong.is_default else None,
        fixes=[context.replace(entry, better, title, safe=False)],
    )


def _of_precision(context: Context) -> Iterator[Finding]:
    for section in ("fp16", "bf16"):
        key = f"{section}.enabled"
        entry, is_on = context.entry(key), context.raw(key)
        found = (_clash(context, entry, section, is_on, said) for said in scripted(context, _PRECISION))
        if isinstance(is_on, bool):
            yield from islice(filter(None, found), 1)


def _clash(context: Context, entry: Entry | None, section: str, is_on: object, said: Stated) -> Finding | None:
    """Return what is said of the switch of a section and a precision that the script gives; None if they agree."""
    wanted = _SECTIONS.get(str(said.value), "")
    if entry is None or is_on is (wanted == section):
        return None
    severity = Severity.INFO if said.is_default else Severity.WARNING
    if context.facts.launched:
        message = say("{said} counts, and `mixed_precision` of this file has no effect", said=said.said)
    elif is_on and wanted:
        if any(one.holds_config for one in context.facts.accelerated):
            return None  # CV113 says it
        message = say("Accelerate raises ValueError: {said}, but {section} is on here", said=said.said, section=section)
        severity = Severity.WARNING if said.is_default else Severity.ERROR
        return context.finding(entry, message, severity=severity, effect=Effect.REJECTED)
    else:
        message = _counts(f"{shown(entry.path)} {json_text(is_on)}", said)
    return context.finding(entry, message, severity=severity)


def _counts(value: str, said: Stated) -> str:
    return say("{value} counts, and {said} has no effect", value=value, said=said.said)


def _is_added(context: Context, entry: Entry) -> bool:
    """Return whether Accelerate adds the "auto" of a key, as for one that its YAML leaves out."""
    node = entry.node
    written = "" if node is None else context.document.text[node.start : node.end].strip("\"'")
    return isinstance(node, Scalar) and node.value() == AUTO and written != AUTO
