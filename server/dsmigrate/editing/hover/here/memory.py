"""The bytes behind a number of elements, and behind a number of buffers."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import bytes_text, in_force, size, unmet
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.languages import say
from dsmigrate.rules.context import Context

_SWAPPED = "zero_optimization.offload_optimizer.buffer_count"
_GROUP = "zero_optimization.sub_group_size"


def lines(at: Subject) -> Iterator[str]:
    """Yield what the number takes in memory, where it is used at all."""
    key, context = at.key, at.context
    if key is None or unmet(context, key, at.target.path) is not None:
        return
    if key.memory:
        found = size(context, key, in_force(context, key.path))
        if found is not None:
            yield found.sentence
    elif key.path == _SWAPPED:
        yield from _swapped(context)
    elif key.unit == "bytes":
        count = whole(context.number(key.path))
        if count is not None and count >= 1024:
            yield say("{text}.", text=bytes_text(count))


def _swapped(context: Context) -> Iterator[str]:
    """Yield the page-locked memory for swapping optimizer states: buffers of the largest sub-group of a rank."""
    count, group = whole(context.number(_SWAPPED)), whole(context.number(_GROUP))
    masters = precision(context).masters
    if count and group and masters is not None:
        most = count * group * WIDTHS[masters]
        yield say(
            "At most {most} of page-locked host memory on each rank; less where a shard is smaller.",
            most=bytes_text(most),
        )
