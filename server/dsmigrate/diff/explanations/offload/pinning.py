"""Page-locked host memory."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import switched, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.sizes import bytes_text
from dsmigrate.languages import say
from dsmigrate.memory import Over, Place, text, usage

_TWO = '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": true}'
_HOST = ', "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"'


@explanation(
    "DF503",
    "pinned-memory",
    summary="Host buffers of offload are page-locked, or no longer.",
    why=(
        "Page-locked memory makes copies asynchronous and fast. It is never paged out and counts against the memlock"
        " limit, so that a host that just had room may refuse it. Left out, it is on since 0.19.5 and off before. For"
        " parameters the flat buffer of trainable shards is locked in any case; the key is for frozen ones."
    ),
    source=(
        "deepspeed/runtime/zero/offload_config.py:DeepSpeedZeroOffloadOptimizerConfig",
        "deepspeed/runtime/zero/stage_1_and_2.py:_unpin_offload_buffers",
        "deepspeed/runtime/zero/stage3.py:_setup_for_real_optimizer",
    ),
    examples=(
        Example(
            f"{_TWO}{_HOST}}}}}}}",
            f'{_TWO}{_HOST}, "pin_memory": false}}}}}}',
            "Host buffers of the optimizer are pageable, 10Ψ/N bytes on each rank: copies are slower, and the memlock"
            " limit is of no matter",
            paths=("zero_optimization.offload_optimizer.pin_memory",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            f"{_TWO}{_HOST}}}}}}}",
            f"{_TWO}{_HOST}}}}}}}",
            "Host buffers of the optimizer are page-locked, 10Ψ/N bytes on each rank, which is 8.15 GiB: the memlock"
            " limit must allow it",
            severity=Severity.WARNING,
            old_version="0.19.4",
            new_version="0.19.8",
            world_size=8,
            parameters=7_000_000_000,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory":'
            " false}}}",
            "Host shards of frozen parameters, and second ones of groups, are pageable; those of trainable ones are"
            " page-locked in any case",
        ),
        Example(f"{_TWO}{_HOST}}}}}}}", f'{_TWO}{_HOST}, "pin_memory": true}}}}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what is locked now, and how much."""
    for move, on in switched(pair, "offload_optimizer.pin_memory"):
        takes = _locked(pair, on=on)
        if on:
            message = say(
                "Host buffers of the optimizer are page-locked{takes}: the memlock limit must allow it", takes=takes
            )
        else:
            message = say(
                "Host buffers of the optimizer are pageable{takes}: copies are slower, and the memlock limit is "
                "of no matter",
                takes=takes,
            )
        severity = Severity.WARNING if on else Severity.INFO
        advice = say("`ulimit -l` tells the limit") if on else ""
        brief = say("host buffers {word}", word=say("page-locked") if on else say("pageable"))
        yield told(pair, move, message, severity=severity, advice=advice, brief=brief)
    for move, on in switched(pair, "offload_param.pin_memory"):
        message = say(
            "Host shards of frozen parameters, and second ones of groups, are {word}; those of trainable "
            "ones are page-locked in any case",
            word=say("page-locked") if on else say("pageable"),
        )
        yield told(pair, move, message)


def _locked(pair: Pair, *, on: bool) -> str:
    """Return how much that is on each rank: the parts that are locked on the side where they are."""
    found = usage((pair.new if on else pair.old).context)
    device = pair.new.context.device("offload_optimizer")
    if found is None or (device == "nvme" and found.stage == 3):
        return ""
    shares = [part for part in found.select(Place.HOST) if part.pinned and part.over is Over.SHARD]
    own = [part for part in shares if "weights of the shard" not in part.says or part.what.value != "parameters"]
    if not own:
        return ""
    sizes = [part.bytes for part in own]
    known = say(", which is {sum}", sum=bytes_text(sum(one for one in sizes if one))) if None not in sizes else ""
    return say(", {own} bytes on each rank{known}", own=text(own), known=known)
