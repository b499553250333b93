"""The `aio` section: how each rank reads and writes NVMe."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import moved, switched, tail, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.sizes import bytes_text, whole
from dsmigrate.languages import mark, say

_NVME = '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/local"}}'
_AIO = f'{{"train_batch_size": 8, {_NVME}, "aio": '
_SWAPPED_FROM = 2**20
"""Bytes of a shard below which it is never swapped (deepspeed/runtime/swap_tensor/constants.py:MIN_AIO_BYTES)."""
_SWITCHES = {
    "single_submit": (
        mark("Each disk request is passed to the kernel by a call of its own"),
        mark("Disk requests are passed to the kernel in batches"),
    ),
    "overlap_events": (
        mark("A disk request is followed by the next one as soon as any has finished"),
        mark("Disk requests are passed in batches, each of which is waited for as a whole"),
    ),
}


@explanation(
    "DF509",
    "disk-requests",
    summary="Transfers to and from NVMe are cut into other pieces, or take another way.",
    why=(
        "A thread has at most `block_size * queue_depth` bytes on their way to the disk, and `intra_op_parallelism`"
        " threads share each transfer. Shards below the block size, or 1 MiB if that is more, are not swapped. The"
        " numbers stay the same."
    ),
    source=(
        "deepspeed/runtime/swap_tensor/aio_config.py:get_aio_config",
        "deepspeed/runtime/swap_tensor/optimizer_utils.py:OptimizerSwapper",
    ),
    examples=(
        Example(
            _AIO + "{}}",
            _AIO + '{"block_size": 8388608, "queue_depth": 16}}',
            "Each thread has up to 16 disk requests of 8 MiB under way instead of 8 of 1 MiB; shards below 8 MiB"
            " stay in host memory, previously those below 1 MiB",
            paths=("aio.block_size", "aio.queue_depth"),
            effects=(Effect.SPEED,),
            severity=Severity.INFO,
        ),
        Example(
            _AIO + "{}}",
            _AIO + '{"intra_op_parallelism": 4}}',
            "Each transfer to and from the disk is shared by 4 threads instead of 1",
        ),
        Example(
            f'{{"train_batch_size": 8, {_NVME}, "aio": {{"overlap_events": true}}}}',
            _AIO + '{"overlap_events": false}}',
            "Disk requests are passed in batches, each of which is waited for as a whole",
        ),
        Example(_AIO + "{}}", _AIO + '{"block_size": 1048576}}', ""),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "aio": {"block_size": 8388608}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield how the disk is used now."""
    yield from _requests(pair)
    move = moved(pair, "intra_op_parallelism", "aio")
    if move is not None and whole(move.after) is not None and whole(move.before) is not None:
        threads = say("{after} thread{en_s}", after=move.after, en_s="" if move.after == 1 else "s")
        message = say(
            "Each transfer to and from the disk is shared by {threads}{tail}",
            threads=threads,
            tail=tail(move, str(move.before)),
        )
        yield told(pair, move, message)
    for name, (begins, ends) in _SWITCHES.items():
        for switch, on in switched(pair, name, "aio"):
            yield told(pair, switch, begins if on else ends)
    for switch, on in switched(pair, "use_gds", "aio"):
        message = (
            say(
                "Weights and checkpoints go between NVMe and the GPU directly, with the buffers for weights in "
                "GPU memory"
            )
            if on
            else say("Weights and checkpoints go between NVMe and the GPU through host memory")
        )
        yield told(pair, switch, message, severity=Severity.WARNING if on else Severity.INFO)


def _requests(pair: Pair) -> Iterator[Explained]:
    moves = [moved(pair, name, "aio") for name in ("block_size", "queue_depth")]
    first = next((one for one in moves if one is not None), None)
    if first is None:
        return
    known = pair.new.known
    before = [whole(pair.old.value(f"aio.{name}")) for name in ("block_size", "queue_depth")]
    after = [whole(pair.new.value(f"aio.{name}")) for name in ("block_size", "queue_depth")]
    if first.begins:
        before = [whole(known.default(f"aio.{name}")) for name in ("block_size", "queue_depth")]
    if None in before or None in after:
        return
    (old_block, old_depth), (block, depth) = [[one or 0 for one in pieces] for pieces in (before, after)]
    end = tail(first, say("{old_depth} of {old_block}", old_depth=old_depth, old_block=bytes_text(old_block)))
    message = say(
        "Each thread has up to {depth} disk requests of {block} under way{end}",
        depth=depth,
        block=bytes_text(block),
        end=end,
    )
    if max(block, _SWAPPED_FROM) != max(old_block, _SWAPPED_FROM):
        stays, stayed = (bytes_text(max(one, _SWAPPED_FROM)) for one in (block, old_block))
        message += say(
            "; shards below {stays} stay in host memory, previously those below {stayed}", stays=stays, stayed=stayed
        )
    more = tuple(one.path for one in moves if one is not None and one is not first)
    yield told(pair, first, message, more=more, effects=(Effect.SPEED,))
