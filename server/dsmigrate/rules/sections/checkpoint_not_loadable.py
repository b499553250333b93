"""DS912: a `checkpoint.writer` whose checkpoints DeepSpeed does not find or cannot read again."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_TYPE = "checkpoint.writer.type"


@rule(
    "DS912",
    "checkpoint-not-loadable",
    summary="A checkpoint writer whose files cannot be loaded again: MOCK, FAST below ZeRO stage 3, a multiplier.",
    why="`MOCK` leaves empty files. `FAST`, also the default, appends `-<rank>.<writers>` to every file name below "
    "stage 3, and `load_checkpoint` looks for the plain names. `io_multiplier` above 1 counts writers that do "
    "not exist, whose shares are written by nobody.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=(
        "deepspeed/io/fast_file_writer.py:FastFileWriter",
        "deepspeed/io/mock_file_writer.py:MockFileWriter",
        "deepspeed/runtime/model_checkpointing/writer_factory.py:CheckpointWriterFactory",
    ),
    since="0.17.1",
    keys=(_TYPE, "checkpoint.writer.io_multiplier"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "checkpoint": {"writer": {"type": «"mock"»}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}, '
            '"checkpoint": {"writer": {"type": "PYTHON"}}}',
            accepted=None,  # needs CROSS_SIZE in the environment
        ),
        Example(
            '{"train_batch_size": 8, "checkpoint": {«"writer"»: {"data_parallel": "machine"}}}',
            fixed='{"train_batch_size": 8, "checkpoint": {"writer": {"data_parallel": "machine", "type": "PYTHON"}}}',
            accepted=None,  # the same
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "checkpoint": {"writer": {"type": "FAST"}}}',
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the type, or at the section that leaves it out, and at the multiplier."""
    writer = context.entry("checkpoint.writer")
    if writer is None or not isinstance(writer.node, Object):
        return
    kind = str(context.value(_TYPE)).upper()
    reason = None
    if kind == "MOCK":
        reason = say("The MOCK writer leaves empty files, so that no checkpoint of this run can be loaded")
    elif kind == "FAST" and context.stage in {0, 1, 2}:
        reason = say(
            "Below ZeRO stage 3 (here {stage}) the FAST writer changes the file names, and `load_checkpoint` "
            "does not find them",
            stage=context.stage,
        )
    if reason is not None:
        given = context.has(_TYPE)
        title = say('Write with `"PYTHON"`')
        fix = (
            context.replace(_TYPE, "PYTHON", title, safe=False)
            if given
            else context.insert((*writer.path, "type"), "PYTHON", title, safe=False)
        )
        yield context.finding(_TYPE if given else writer, reason, part="value" if given else "key", fixes=[fix])
    multiplier = context.number("checkpoint.writer.io_multiplier")
    if multiplier is not None and multiplier > 1 and kind == "FAST" and context.stage in {0, 1, 2}:
        yield context.finding(
            "checkpoint.writer.io_multiplier",
            say(
                "A multiplier of {multiplier} leaves the shares of missing writers unwritten; it is for benchmarks",
                multiplier=multiplier,
            ),
        )
