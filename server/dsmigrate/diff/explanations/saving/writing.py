"""How checkpoints are written: by whom, in which format, with which checks."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark, say

_TAGS = "checkpoint.tag_validation"
_ZIP = "checkpoint.checkpoint_serialization"
_LOCAL = "checkpoint.use_node_local_storage"
_SHARED = "checkpoint.parallel_write.pipeline_stage"
_WRITER = Feature(
    section="checkpoint.writer",
    switch="",
    begins=mark(
        "Checkpoints are written by DeepSpeed's own writer instead of `torch.save`; below ZeRO 3 its "
        "default, FAST, gives files names that `load_checkpoint` does not find"
    ),
    ends=mark("Checkpoints are written by `torch.save` again, instead of DeepSpeed's own writer"),
    runs=mark("The writer of checkpoints works otherwise"),
    brief=mark("DeepSpeed's checkpoint writer"),
    advice=mark("Try to load one of its checkpoints before the run depends on them"),
)
_STATES = Feature(
    section="datastates_ckpt",
    switch="",
    begins=mark("Checkpoints are written in the background by the package DataStates-LLM, through pinned host memory"),
    ends=mark("Checkpoints are written by `torch.save` again, instead of the package DataStates-LLM"),
    runs=mark("DataStates-LLM writes checkpoints otherwise"),
    brief=mark("DataStates-LLM checkpoints"),
)


@explanation(
    "DF812",
    "checkpoint-writing",
    summary="Checkpoints are written by another writer, on other ranks, in another file format, or checked otherwise.",
    why=(
        "By default every rank writes its files through `torch.save`, data-parallel rank 0 the weights, and the tag is"
        " compared over all ranks. None of it touches training; what matters is whether the files are found, and load."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.save_checkpoint",
        "deepspeed/runtime/model_checkpointing/config.py",
        "deepspeed/runtime/checkpoint_engine/fast_checkpoint_engine.py",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "checkpoint": {"tag_validation": "Fail"}}',
            "Ranks that save under different tags stop the run now, previously a warning was logged",
            paths=(_TAGS,),
            effects=(Effect.CHECKPOINT,),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "checkpoint": {"use_node_local_storage": true}}',
            "Every node writes the weights and the files of its own ranks now, for storage that nodes do not share",
            paths=(_LOCAL,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "checkpoint": {"checkpoint_serialization": false}}',
            "Checkpoint files get the older pickle format of torch, previously zip: both load",
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "checkpoint": {"writer": {"type": "PYTHON", "data_parallel": "replica"}}}',
            "Checkpoints are written by DeepSpeed's own writer instead of `torch.save`",
            effects=(Effect.SPEED, Effect.CHECKPOINT),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "checkpoint": {"tag_validation": "Warn"}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield how checkpoints are written now."""
    change = pair.change(_TAGS)
    if change is not None:
        new, old = _ENDS.get(str(change.new_meant).upper()), _ENDS.get(str(change.old_meant).upper())
        if new and old and new is not old:
            yield pair.says(
                _TAGS,
                effects=(Effect.CHECKPOINT,),
                severity=Severity.INFO,
                message=say(
                    "Ranks that save under different tags {new} now, previously {old}", new=say(new[0]), old=say(old[1])
                ),
            )
    for path, on, off, severity in _SWITCHES:
        before, after = pair.old.is_on(path), pair.new.is_on(path)
        if pair.change(path) is not None and before is not after and None not in (before, after):
            yield pair.says(path, effects=(Effect.CHECKPOINT,), severity=severity, message=on if after else off)
    yield from told(pair, _WRITER, effects=(Effect.SPEED, Effect.CHECKPOINT))
    yield from told(pair, _STATES, effects=(Effect.MEMORY, Effect.SPEED, Effect.CHECKPOINT))


_ENDS = {
    "FAIL": (mark("stop the run"), mark("they stopped the run")),
    "WARN": (mark("get a warning in the log"), mark("a warning was logged")),
    "IGNORE": (mark("go unnoticed"), mark("went unnoticed")),
}
_SWITCHES = (
    (
        _ZIP,
        mark("Checkpoint files get the zip format of torch, previously its older pickle format: both load"),
        mark(
            "Checkpoint files get the older pickle format of torch, previously zip: both load, but only zip can be"
            " mapped"
        ),
        Severity.INFO,
    ),
    (
        _LOCAL,
        mark("Every node writes the weights and the files of its own ranks now, for storage that nodes do not share"),
        mark(
            "One rank writes the weights for all nodes now, which have to share storage; previously every node "
            "wrote its own"
        ),
        Severity.WARNING,
    ),
    (
        _SHARED,
        mark("The data-parallel ranks of a pipeline stage share the writing of its layers now: the same files, sooner"),
        mark("Data-parallel rank 0 of a pipeline stage writes all its layers again: the same files, later"),
        Severity.INFO,
    ),
)
