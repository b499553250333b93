"""What asynchronous I/O keeps in flight."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import bytes_text
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.languages import say

_PARTS = ("aio.block_size", "aio.queue_depth", "aio.intra_op_parallelism")


def lines(at: Subject) -> Iterator[str]:
    """Yield the product of block size, queue depth and threads at each of them."""
    if at.path not in {"aio", *_PARTS}:
        return
    block, depth, threads = (whole(at.context.number(path)) for path in _PARTS)
    if block and depth and threads:
        total = bytes_text(block * depth * threads)
        product = f"{bytes_text(block)} × {depth} × {threads}"
        yield say(
            "Up to {total} in flight on each rank: {product} (block size, queue depth, threads).",
            total=total,
            product=product,
        )
