"""Keys that do nothing on either side: dead ones, and those whose switch, stage or device is not on."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.phrases import uncapital
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.inert import Unmet, unmet
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import values_text
from dsmigrate.languages import say


@explanation(
    "DF103",
    "inert-key",
    summary="A key that belongs to a stage, a switch or a device which neither side has on.",
    why=(
        "DeepSpeed accepts keys that do nothing in the config they stand in: `stage3_*` below stage 3, loss scaling"
        " without fp16, NVMe settings without NVMe. Such an edit begins to count when the condition comes true."
    ),
    source=("deepspeed/runtime/zero/config.py:DeepSpeedZeroConfig", "deepspeed/runtime/engine.py:DeepSpeedEngine"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "stage3_max_live_parameters": 5e8}}',
            "Does nothing while `zero_optimization.stage` is `2`; it needs `3`",
            paths=("zero_optimization.stage3_max_live_parameters",),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"buffer_count": 9}}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            'Does nothing while `zero_optimization.offload_param.device` is `"none"`; it needs `"nvme"`',
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 0}}',
            '{"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 128}}',
            "Does nothing while `fp16.enabled` is `false`; it needs `true`",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 5e8}}',
            "",
        ),
    ),
)
def explain_inert(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each key whose conditions hold on neither side."""
    for path, change in pair.changes.items():
        if not change.differs or any(pair.lives(path)):
            continue
        first, second = (pair.old, pair.new) if change.new is MISSING else (pair.new, pair.old)
        found = _unmet(first, path) or _unmet(second, path)
        if found is not None:
            yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=_message(found))


@explanation(
    "DF104",
    "dead-key",
    summary="A key that DeepSpeed accepts and that nothing reads.",
    why="Some keys outlived the code that read them. They may say anything; DeepSpeed does the same.",
    source=("deepspeed/runtime/engine.py:zero_allgather_partitions",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_partitions": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_partitions": false}}',
            "No effect: the accessor that reads it is never called, so `true` and `false` train the same way",
            paths=("zero_optimization.allgather_partitions",),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": false}}',
            "",
        ),
    ),
)
def explain_dead(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each dead key that says something else."""
    for path, change in pair.changes.items():
        key = pair.new.known.key(path)
        if change.differs and key is not None and key.dead and not any(pair.lives(path)):
            message = say("No effect: {rstrip}", rstrip=uncapital(key.dead.rstrip(".。")))
            yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=message)


def _unmet(side: Side, path: str) -> Unmet | None:
    key = side.known.key(path)
    if key is None or not side.reads(path) or key.dead:
        return None
    return unmet(side.context, key, side.place(path))


def _message(found: Unmet) -> str:
    if found.alternatives:
        return say("Does nothing here: it does something only when {alternatives}", alternatives=found.alternatives)
    if not found.wanted:
        return say("Does nothing: it needs `{found_path}`, which is not there", found_path=found.path)
    wanted = values_text(found.wanted)
    held = say("left out") if found.held is MISSING or found.held is None else shown(found.held)
    return say(
        "Does nothing while `{found_path}` is {held}; it needs {wanted}",
        found_path=found.path,
        held=held,
        wanted=wanted,
    )
