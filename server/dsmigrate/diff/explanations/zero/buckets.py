"""Gradient buckets: their size, whether there is one, and whether a second one lets communication overlap."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import (
    ZERO,
    both_sizes,
    elements,
    in_bytes,
    moved,
    switched,
    tail,
    told,
)
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.force import CONTIGUOUS, in_force
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.languages import say

_SIZE = "reduce_bucket_size"
_BF16 = '"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization"'


@explanation(
    "DF405",
    "reduce-bucket",
    summary="Gradients are reduced in larger or smaller buckets, which are standing buffers on each GPU.",
    why=(
        "A bucket is filled with gradients and reduced in one message. It counts elements, and is allocated whole: one"
        " buffer, two at stage 1 and 2 with `overlap_comm`. Small buckets mean many messages, and more of them while"
        " backward still runs. The numbers stay the same."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:setup_buckets",
        "deepspeed/runtime/zero/stage3.py:_setup_for_real_optimizer",
    ),
    examples=(
        Example(
            f'{{{_BF16}: {{"stage": 2}}}}',
            f'{{{_BF16}: {{"stage": 2, "reduce_bucket_size": 2e8}}}}',
            "Gradients are reduced in buckets of 200 M elements instead of 500 M: 381 MiB instead of 0.93 GiB in bf16"
            " on each GPU",
            paths=("zero_optimization.reduce_bucket_size",),
            effects=(Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            f'{{{_BF16}: {{"stage": 2, "overlap_comm": true}}}}',
            f'{{{_BF16}: {{"stage": 2, "overlap_comm": true, "reduce_bucket_size": 1e9}}}}',
            "Gradients are reduced in buckets of 1 G elements instead of 500 M: 2 × 1.86 GiB instead of 2 × 0.93"
            " GiB in bf16 on each GPU, 7 messages per backward instead of 14",
            parameters=7_000_000_000,
        ),
        Example(
            f'{{{_BF16}: {{"stage": 0}}}}',
            f'{{{_BF16}: {{"stage": 2, "reduce_bucket_size": 2e8}}}}',
            "Gradients are reduced in buckets of 200 M elements, 381 MiB in bf16 on each GPU; the default is 500 M",
        ),
        Example(f'{{{_BF16}: {{"stage": 2}}}}', f'{{{_BF16}: {{"stage": 2, "reduce_bucket_size": 5e8}}}}', ""),
    ),
)
def explain_size(pair: Pair) -> Iterator[Explained]:
    """Yield what the size of buckets comes to in memory and messages."""
    move = moved(pair, _SIZE)
    if move is None:
        return
    before, after = whole(move.before), whole(move.after)
    if before is None or after is None:
        return
    takes, took = both_sizes(pair, move)
    parameters = pair.new.context.facts.parameters
    messages = ""
    if parameters and before and after and not move.begins:
        messages = say(
            ", {what} messages per backward instead of {what_2}",
            what=-(-parameters // after),
            what_2=-(-parameters // before),
        )
    end = tail(move, elements(before), takes, took, say(" on each GPU"))
    brief = say("of {takes}", takes=takes) if takes else say("of {after} elements", after=elements(after))
    message = say(
        "Gradients are reduced in buckets of {after} elements{end}{messages}",
        after=elements(after),
        end=end,
        messages=messages,
    )
    yield told(pair, move, message, brief=say("gradient buckets {brief}", brief=brief))


@explanation(
    "DF406",
    "overlap-communication",
    summary="Communication of gradients, and at stage 3 of weights, overlaps computation or not.",
    why=(
        "On a stream of its own communication costs no time as long as there is computation to hide it. At stage 1 and"
        " 2 that takes a second bucket buffer. Left unset, it is on at stage 3 and off below it."
    ),
    source=(
        "deepspeed/runtime/zero/config.py:overlap_comm_valid",
        "deepspeed/runtime/zero/stage_1_and_2.py:setup_buckets",
        "deepspeed/runtime/zero/parameter_offload.py:DeepSpeedZeRoOffload",
    ),
    examples=(
        Example(
            f'{{{_BF16}: {{"stage": 2}}}}',
            f'{{{_BF16}: {{"stage": 2, "overlap_comm": true}}}}',
            "Buckets of gradients are reduced while backward goes on, with a second buffer: 2 × 0.93 GiB in bf16 on"
            " each GPU",
            paths=("zero_optimization.overlap_comm",),
            effects=(Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            f'{{{_BF16}: {{"stage": 1, "overlap_comm": true}}}}',
            f'{{{_BF16}: {{"stage": 1, "overlap_comm": false}}}}',
            "Gradients are reduced after the last backward of a step, with one buffer: 0.93 GiB in bf16 on each GPU",
        ),
        Example(
            f'{{{_BF16}: {{"stage": 2, "reduce_bucket_size": 2e8}}}}',
            f'{{{_BF16}: {{"stage": 2, "overlap_comm": true, "reduce_bucket_size": 3e8}}}}',
            "Buckets of gradients are reduced while backward goes on, with a second buffer",  # DF405 says their size
        ),
        Example(
            f'{{{_BF16}: {{"stage": 3}}}}',
            f'{{{_BF16}: {{"stage": 3, "overlap_comm": false}}}}',
            "Gathers and reductions wait for computation and computation for them, so that prefetching hides nothing",
        ),
        Example(f'{{{_BF16}: {{"stage": 3}}}}', f'{{{_BF16}: {{"stage": 3, "overlap_comm": true}}}}', ""),
        Example(f'{{{_BF16}: {{"stage": 2}}}}', f'{{{_BF16}: {{"stage": 2, "overlap_comm": null}}}}', ""),
    ),
)
def explain_overlap(pair: Pair) -> Iterator[Explained]:
    """Yield what goes on beside what, and what the second buffer takes."""
    move = moved(pair, "overlap_comm")
    stage = pair.new.context.stage
    if move is None or not isinstance(move.after, bool) or move.after is (move.before if not move.begins else None):
        return
    size = in_bytes(pair.new, f"{ZERO}.{_SIZE}", pair.new.value(f"{ZERO}.{_SIZE}"))
    takes = say(": {size} on each GPU", size=size) if size and moved(pair, _SIZE) is None else ""  # DF405 says it
    if stage == 3:
        message = (
            say("Gathers of weights and reductions of gradients overlap computation")
            if move.after
            else say(
                "Gathers and reductions wait for computation and computation for them, so that prefetching hides "
                "nothing"
            )
        )
    elif move.after:
        message = say(
            "Buckets of gradients are reduced while backward goes on, with a second buffer{takes}", takes=takes
        )
    else:
        when = say("after the last backward of a step") if stage == 1 else say("while backward waits")
        message = say("Gradients are reduced {when}, with one buffer{takes}", when=when, takes=takes)
    yield told(
        pair,
        move,
        message,
        brief=say("communication overlaps computation")
        if move.after
        else say("communication no longer overlaps computation"),
    )


@explanation(
    "DF407",
    "contiguous-gradients",
    summary="Gradients go through a standing bucket buffer, or are flattened for each reduction.",
    why=(
        "With a standing buffer a gradient is copied as soon as it is there and its own memory is free again, which"
        " keeps memory in one piece. Without it gradients stay where they are until a bucket's worth has come, and are"
        " flattened into a temporary tensor. Below stage 3 they are then always all-reduced."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:reduce_independent_p_g_buckets_and_remove_grads",
        "deepspeed/runtime/zero/stage_1_and_2.py:reduce_ipg_grads",
    ),
    examples=(
        Example(
            f'{{{_BF16}: {{"stage": 2}}}}',
            f'{{{_BF16}: {{"stage": 2, "contiguous_gradients": false}}}}',
            "There is no standing buffer for gradients any more, 0.93 GiB in bf16 on each GPU; they stay where"
            " they are until a bucket's worth has come",
            paths=("zero_optimization.contiguous_gradients",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            f'{{{_BF16}: {{"stage": 3, "contiguous_gradients": false}}}}',
            f'{{{_BF16}: {{"stage": 3}}}}',
            "Gradients are copied into a standing buffer as they come: 0.93 GiB in bf16 on each GPU",
        ),
        Example(
            f'{{{_BF16}: {{"stage": 2, "offload_optimizer": {{"device": "cpu"}}}}}}',
            f'{{{_BF16}: {{"stage": 2, "offload_optimizer": {{"device": "cpu"}}, "contiguous_gradients": false}}}}',
            "Does nothing: with the optimizer offloaded stage 1 and 2 keep the buffer whatever it says",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(f'{{{_BF16}: {{"stage": 0}}}}', f'{{{_BF16}: {{"stage": 0, "contiguous_gradients": false}}}}', ""),
    ),
)
def explain_contiguous(pair: Pair) -> Iterator[Explained]:
    """Yield whether there is a standing buffer, and what it takes."""
    for move, on in switched(pair, "contiguous_gradients"):
        if in_force(pair.new.context, CONTIGUOUS) is True and not on:
            message = say("Does nothing: with the optimizer offloaded stage 1 and 2 keep the buffer whatever it says")
            yield told(pair, move, message, effects=(Effect.NONE,), severity=Severity.NONE)
            continue
        side = pair.new if on else pair.old
        takes = in_bytes(side, f"{ZERO}.{_SIZE}", side.value(f"{ZERO}.{_SIZE}"))
        if on:
            message = say(
                "Gradients are copied into a standing buffer as they come{more}",
                more=say(": {takes} on each GPU", takes=takes) if takes else "",
            )
        else:
            message = say(
                "There is no standing buffer for gradients any more{more}; they stay where they are until a "
                "bucket's worth has come",
                more=say(", {takes} on each GPU", takes=takes) if takes else "",
            )
        yield told(
            pair, move, message, brief=say("a standing gradient buffer") if on else say("no standing gradient buffer")
        )
