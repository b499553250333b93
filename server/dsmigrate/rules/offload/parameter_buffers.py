"""DS533: buffers for parameters on NVMe that are too small, or too few, for the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Fix, ModelFacts, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, place

_SECTION = f"{ZERO}.offload_param"
_COUNT, _SIZE = f"{_SECTION}.buffer_count", f"{_SECTION}.buffer_size"
_REUSE = f"{ZERO}.stage3_max_reuse_distance"
_KEPT = f"{ZERO}.stage3_param_persistence_threshold"
_SMALL = 100_000
"""The threshold where "auto" leaves it open: ten times the width of the model, as a rule less."""
_HEAD = (
    '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/l"'
)
_MODEL = ModelFacts("config.json", (60_000_000,) * 40)


@rule(
    "DS533",
    "few-parameter-buffers",
    summary="Buffers for parameters on NVMe that do not hold what stage 3 keeps, or a tensor of the model.",
    why="A tensor occupies one of the `buffer_count` buffers from when it is read until it is released; when none is "
    'left the run stops with "Not enough buffers 0 for swapping 1". What comes again within '
    "`stage3_max_reuse_distance` elements is not released: around the turn from forward to backward these are the "
    "last tensors, of about half of the distance. A rank's part of a tensor has to fit into `buffer_size` elements. "
    "Told if the model is known.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:AsyncPartitionedParameterSwapper",
        "https://github.com/deepspeedai/DeepSpeed/issues/3062",
    ),
    keys=(_COUNT, _SIZE),
    examples=(
        Example(
            _HEAD + ', "buffer_count": «5»}}}',
            fixed=_HEAD + ', "buffer_count": 10}}}',
            facts=Facts(model=_MODEL),
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(
            _HEAD + ', "buffer_count": 20, "buffer_size": «1e6»}}}',
            fixed=_HEAD + ', "buffer_count": 20, "buffer_size": 30000000}}}',
            facts=Facts(model=_MODEL, world_size=2),
            accepted=None,  # libaio, too
        ),
        Example(_HEAD + ', "buffer_count": 20}}}', facts=Facts(model=_MODEL), accepted=None),  # libaio, too
        Example(_HEAD + ', "buffer_count": 5}}}', accepted=None),  # libaio, too
        Example(
            _HEAD + ', "buffer_count": 5}, "stage3_max_reuse_distance": 0}}',
            facts=Facts(model=_MODEL),
            accepted=None,  # libaio, too
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the size and for the number of the buffers."""
    model, count, size = context.facts.model, context.number(_COUNT), context.number(_SIZE)
    if model is None or not model.tensors or context.stage != 3 or context.device("offload_param") != "nvme":
        return
    ranks = context.facts.world_size
    part = -(-max(model.tensors) // ranks) if ranks else 0
    if size is not None and part > size and model.exact:
        yield context.finding(
            place(context, _SIZE, _SECTION),
            say(
                "a rank's part of the largest tensor has {part} elements, a buffer {size}",
                part=part,
                size=json_text(size),
            ),
            severity=Severity.ERROR,
            effect=Effect.REJECTED,
            fixes=[_write(context, _SIZE, part)],
        )
    reuse, kept = context.number(_REUSE), context.number(_KEPT)
    if count is None or reuse is None:
        return
    needed = _held(model.tensors, reuse / 2, _SMALL if kept is None else kept) + 2
    if count < needed:
        name = model.name if model.exact else say("a typical model of this size")
        yield context.finding(
            place(context, _COUNT, _SECTION),
            say(
                "{count} buffers for parameters are too few for {name}: stage 3 keeps about {held} of its tensors "
                "within `stage3_max_reuse_distance` and reads more ahead; raise `buffer_count` or lower the distance",
                count=int(count),
                name=name,
                held=needed - 2,
            ),
            fixes=[_write(context, _COUNT, needed)],
        )


def _held(tensors: Sequence[int], elements: float, kept: float) -> int:
    """Return how many of the last tensors have so many elements together; small ones stay on the GPU anyway."""
    found = 0
    for size in reversed([size for size in tensors if size > kept]):
        elements -= size
        if elements < 0:
            break
        found += 1
    return found


def _write(context: Context, path: str, value: int) -> Fix:
    write = context.replace if context.has(path) else context.insert
    return write(context.path_of(path), value, say("Write {value}", value=value), safe=False)
