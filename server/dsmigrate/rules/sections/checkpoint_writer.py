"""DS911: a `checkpoint.writer` that cannot start."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS911",
    "checkpoint-writer-start",
    summary="`checkpoint.writer` below ZeRO stage 3 without `data_parallel`: the engine fails when it starts.",
    why="Any object at `checkpoint.writer`, even an empty one, replaces `torch.save`. Its setup reads the "
    "environment variables `CROSS_SIZE` and `CROSS_RANK`, which only the `deepspeed` launcher sets (`torchrun`: "
    "`KeyError: 'CROSS_SIZE'`), and below stage 3 without an `mpu` it needs `data_parallel`, otherwise "
    "`AttributeError: … has no attribute 'dp_rank'`.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/model_checkpointing/utils.py:create_universal_parallel_info",
        "deepspeed/runtime/model_checkpointing/data_parallel_writer_factory.py:DataParallelWriterFactory",
    ),
    since="0.17.1",
    keys=("checkpoint.writer", "checkpoint.writer.data_parallel"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"checkpoint": {«"writer"»: {"type": "PYTHON"}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"checkpoint": {"writer": {"type": "PYTHON", "data_parallel": "machine"}}}',
            accepted=None,  # needs CROSS_SIZE in the environment
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "checkpoint": {"writer": {"type": "PYTHON"}}}',
            accepted=None,  # the same
        ),
        Example('{"train_batch_size": 8, "checkpoint": {"writer": null}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a writer that has no rule about who writes."""
    entry = context.entry("checkpoint.writer")
    if entry is None or not isinstance(entry.node, Object) or context.stage not in {0, 1, 2}:
        return
    if context.value("checkpoint.writer.data_parallel") is None:
        insert = context.insert(
            (*entry.path, "data_parallel"), "machine", say('Add `data_parallel: "machine"`'), safe=False
        )
        yield context.finding(
            entry,
            say(
                "Below ZeRO stage 3 (here {stage}) the writer needs `data_parallel`; without it the engine fails "
                "with an AttributeError about `dp_rank`",
                stage=context.stage,
            ),
            part="key",
            fixes=[insert],
        )
