"""DS913: a staging buffer of the FAST writer that the first save refuses."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SIZE = "checkpoint.writer.io_buffer_size"


@rule(
    "DS913",
    "checkpoint-buffer-size",
    summary="`checkpoint.writer.io_buffer_size` that the FAST writer cannot divide into aligned parts.",
    why="The buffer must be a whole multiple of 512 bytes times `aio.intra_op_parallelism`, and of twice that with "
    "`io_buffer_double`, which is the default. The first save fails with an AssertionError otherwise.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/io/double_io_buffer.py:Double_IO_Buffer", "deepspeed/io/fast_file_writer.py:FastFileWriter"),
    since="0.17.1",
    keys=(_SIZE,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, '
            '"checkpoint": {"writer": {"type": "FAST", "io_buffer_size": «1000000»}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}, '
            '"checkpoint": {"writer": {"type": "FAST", "io_buffer_size": 1000448}}}',
            accepted=None,  # needs CROSS_SIZE in the environment and an accelerator
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, '
            '"checkpoint": {"writer": {"type": "FAST", "io_buffer_size": 67108864}}}',
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a size that is no multiple."""
    writer = context.entry("checkpoint.writer")
    size, threads = context.number(_SIZE), context.number("aio.intra_op_parallelism")
    if writer is None or not isinstance(writer.node, Object) or not context.has(_SIZE):
        return
    if str(context.value("checkpoint.writer.type")).upper() != "FAST" or size is None or not threads:
        return
    unit = 512 * int(threads) * (2 if context.is_on("checkpoint.writer.io_buffer_double") else 1)
    if size <= 0 or size % unit:
        right = max(unit, -(-int(size) // unit) * unit)
        yield context.finding(
            _SIZE,
            say(
                "The first save fails: {size} is no multiple of {unit} bytes, 512 × `aio.intra_op_parallelism` "
                "for each half of the buffer",
                size=size,
                unit=unit,
            ),
            fixes=[context.replace(_SIZE, right, say("Round up to {right}", right=right), safe=True)],
        )
