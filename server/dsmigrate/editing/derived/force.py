"""What is in force for a key: the value of the file or its default, with what DeepSpeed itself puts in its place."""

from __future__ import annotations

from dsmigrate.knowledge import MISSING, Status, paths
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.precision._shared import bf16_is_on

ZERO = "zero_optimization"
STAGE = f"{ZERO}.stage"
OVERLAP = f"{ZERO}.overlap_comm"
CONTIGUOUS = f"{ZERO}.contiguous_gradients"
OPTIMIZER_DEVICE = f"{ZERO}.offload_optimizer.device"
PARAM_DEVICE = f"{ZERO}.offload_param.device"
PREFETCH = f"{ZERO}.stage3_prefetch_bucket_size"
SEQUENTIAL = f"{ZERO}.stage3_allgather_sequential"


def in_force(context: Context, path: str) -> object:
    """Return the value that counts for the key at ``path``; UNKNOWN where it is decided elsewhere or makes no sense.

    ``overlap_comm`` that is left unset follows the stage, offload at stage 1 and 2 forces ``contiguous_gradients``, and
    ``stage3_allgather_sequential`` makes the prefetch bucket one element (deepspeed/runtime/zero/config.py,
    stage_1_and_2.py, engine.py). A switch is a bool, whatever spelling it has.
    """
    if path == STAGE:
        return _or_unknown(context.stage)
    if path == OPTIMIZER_DEVICE:
        return _or_unknown(context.device("offload_optimizer"))
    if path == PARAM_DEVICE:
        return _or_unknown(context.device("offload_param"))
    if path == OVERLAP and context.value(path) is None:
        return UNKNOWN if context.stage is None else context.stage == 3
    if path == CONTIGUOUS and context.stage in {1, 2} and context.device("offload_optimizer") not in {None, "none"}:
        return True
    if path == PREFETCH and context.stage == 3 and _reads(context, SEQUENTIAL) and context.is_on(SEQUENTIAL):
        return 1
    key = context.known.key(path)
    if key is not None and "boolean" in key.type:
        section, _, name = path.partition(".")
        return _or_unknown(bf16_is_on(context, name) if section == "bf16" and name else context.is_on(path))
    number = context.number(path)
    return context.value(path) if number is None else number


def own_path(condition: str, path: tuple[str | int, ...]) -> str:
    """Return the path of a condition with the free names of ``path``: what ``*`` stands for where it is asked."""
    names = [str(part) for part in path if isinstance(part, str)]
    parts = condition.split(paths.SEPARATOR)
    return paths.SEPARATOR.join(
        names[index] if part == paths.ANY_NAME and index < len(names) else part for index, part in enumerate(parts)
    )


def _reads(context: Context, path: str) -> bool:
    key = context.known.key(path)
    return key is not None and key.status in {Status.PRESENT, Status.DEPRECATED}


def _or_unknown(value: object) -> object:
    return UNKNOWN if value is None or value is MISSING else value
