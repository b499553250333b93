"""DS949: block pruning that ends before it begins."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SHARED = "compression_training.sparse_pruning.shared_parameters"
_METHOD, _START, _END = f"{_SHARED}.method", f"{_SHARED}.schedule_offset", f"{_SHARED}.schedule_offset_end"


@rule(
    "DS949",
    "pruning-ends-early",
    summary="`schedule_offset_end` of `snip_momentum` below `schedule_offset`.",
    why="Reading the config asserted that block pruning ends no earlier than it begins. The begin has a default of its "
    "own, which an end by itself has to respect. The other methods do not look at the end.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/compression/config.py:get_sparse_pruning_shared_parameters",),
    since="0.9.3",
    until="0.19.7",
    keys=(_START, _END),
    examples=(
        Example(
            '{"train_batch_size": 8, "compression_training": {"sparse_pruning": {"shared_parameters": {"method": '
            '"snip_momentum", "schedule_offset": 100, "schedule_offset_end": «10»}, "different_groups": {}}}}',
            fixed='{"train_batch_size": 8, "compression_training": {"sparse_pruning": {"shared_parameters": {"method": '
            '"snip_momentum", "schedule_offset": 100}, "different_groups": {}}}}',
            version="0.14.5",
            accepted=None,  # an older release
        ),
        Example(
            '{"train_batch_size": 8, "compression_training": {"sparse_pruning": {"shared_parameters": {"method": '
            '"topk", "schedule_offset": 100, "schedule_offset_end": 10}, "different_groups": {}}}}',
            version="0.14.5",
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for an end before the begin."""
    start, end, entry = context.number(_START), context.number(_END), context.entry(_END)
    if entry is None or start is None or end is None or start <= end or context.value(_METHOD) != "snip_momentum":
        return
    yield context.finding(
        entry,
        say(
            "{end} is before {start}, {start_2}: an assertion fails when the config is read",
            end=end,
            start=shown(_START),
            start_2=start,
        ),
        fixes=[context.remove(entry, say("Remove {end}, to end where pruning begins", end=shown(_END)), safe=False)],
    )
