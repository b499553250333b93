"""DS112: a deprecated key, rewritten as its successor."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import edits as editing
from dsmigrate.knowledge import Consumer, Key, Status
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity, Tag
from dsmigrate.rules.registry import rule

_MEANS_DEVICE = {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
"""Successors that are sections, with what `true` for the old switch stands for."""


@rule(
    "DS112",
    "deprecated-key",
    summary="A deprecated key, which DeepSpeed still translates; the successor may have another shape.",
    why=(
        "DeepSpeed warns and sets the successor itself: `cpu_offload: true` becomes `offload_optimizer` with the device"
        " `cpu`. Beside its successor a deprecated key is an `AssertionError`, whatever the two say."
        " `cpu_offload_use_pin_memory` is the exception: its value is dropped."
    ),
    severity=Severity.WARNING,
    effect=Effect.CHANGED,
    source=("deepspeed/runtime/config_utils.py:_process_deprecated_field", "deepspeed/runtime/zero/config.py"),
    keys=("zero_optimization.cpu_offload", "zero_optimization.offload_optimizer"),
    pains=(18,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"cpu_offload"»: true, "overlap_comm": true},'
            ' "zero_force_ds_cpu_optimizer": false}',
            fixed=(
                '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true, '
                '"offload_optimizer": {"device": "cpu"}}, "zero_force_ds_cpu_optimizer": false}'
            ),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"cpu_offload"»: false}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {«"stage3_gather_fp16_weights_on_model_save"»: true}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage3_gather_16bit_weights_on_model_save": true}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {«"cpu_offload"»: true, "offload_optimizer": {"device":'
            ' "none"}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"offload_optimizer": {"device": "none"}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"cpu_offload_use_pin_memory"»: true}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each deprecated key."""
    for entry in context.entries:
        key, node = entry.key, entry.node
        if key is None or node is None or key.status is not Status.DEPRECATED or node.value() == "auto":
            continue
        other = next((found for path in key.successors if (found := context.entry(path)) is not None), None)
        clash = (
            other is not None and len(key.successors) == 1 and other.node is not None and other.node.value() != "auto"
        )
        names = say(" or ").join(f"`{path.rpartition('.')[2]}`" for path in key.successors)
        if clash and other is not None:
            yield context.finding(
                entry,
                say(
                    "DeepSpeed rejects the deprecated `{name}` beside its successor {names}",
                    name=entry.name,
                    names=names,
                ),
                part="key",
                severity=Severity.ERROR,
                effect=Effect.REJECTED,
                fixes=[context.remove(entry, say("Remove `{name}`", name=entry.name), safe=True)],
                related=[(other, say("the successor"))],
                tags=[Tag.DEPRECATED],
            )
            continue
        dropped = len(key.successors) > 1
        what = (
            say("and its value is dropped") if dropped else say("use {names}, as which DeepSpeed reads it", names=names)
        )
        yield context.finding(
            entry,
            say("`{name}` is deprecated, {what}", name=entry.name, what=what),
            part="key",
            effect=Effect.IGNORED if dropped else None,
            fixes=[_rewritten(context, entry, key, node.value())],
            tags=[Tag.DEPRECATED],
        )


def _rewritten(context: Context, entry: Entry, key: Key, value: object) -> Fix | None:
    """Return the fix that writes what DeepSpeed makes of it; Transformers looks at the new name alone."""
    successor = key.successors[0].rpartition(".")[2] if len(key.successors) == 1 else ""
    if successor in _MEANS_DEVICE:
        if value not in (True, False, None):
            return None
        if not value:
            return context.remove(entry, say("Remove `{name}`", name=entry.name), safe=True)
        target = (*entry.path[:-1], successor)
        return context.fix_all(
            say("Write `{successor}` with the device cpu", successor=successor),
            [
                lambda document: editing.remove(document, entry.path),
                lambda document: editing.insert(document, target, _MEANS_DEVICE[successor]),
            ],
            safe=context.consumer is Consumer.DEEPSPEED,
        )
    if not successor:
        return context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)
    return context.rename(
        entry,
        successor,
        say("Rename it to `{successor}`", successor=successor),
        safe=context.consumer is Consumer.DEEPSPEED,
    )
