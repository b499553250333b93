"""NVMe: buffers on the host, paths, what is read ahead and written behind."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import Move, elements, moved, of_weights, switched, tail, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.sizes import bytes_text, whole
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import mark, say
from dsmigrate.memory import Place, What, usage

_NVME = '"device": "nvme", "nvme_path": "/local"'
_THREE = '{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3'
_STATES = _THREE + f', "offload_optimizer": {{{_NVME}'
_WEIGHTS = _THREE + f', "offload_param": {{{_NVME}'


@explanation(
    "DF505",
    "swap-buffers",
    summary="NVMe offload has more or larger host buffers, or keeps more weights in host memory.",
    why=(
        "What comes from or goes to disk passes through page-locked buffers that are allocated at the start: as many"
        " and as large as said for weights, `buffer_count` times the largest sub-group in fp32 for optimizer states."
        " Too few of them stop the step. `max_in_cpu` elements of a rank's shards never go to disk."
    ),
    source=(
        "deepspeed/runtime/swap_tensor/utils.py:SwapBufferManager",
        "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:AsyncPartitionedParameterSwapper",
        "deepspeed/runtime/zero/stage3.py:_create_param_groups_fp16_flat_cpu_memory",
    ),
    examples=(
        Example(
            _STATES + "}}}",
            _STATES + ', "buffer_count": 8}}}',
            "Optimizer states pass through 8 host buffers, each as large as the largest sub-group, instead of 4: at"
            " most 29.8 GiB instead of 14.9 GiB page-locked on each rank",
            paths=("zero_optimization.offload_optimizer.buffer_count",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            _WEIGHTS + "}}}",
            _WEIGHTS + ', "buffer_count": 8, "buffer_size": 2e8}}}',
            "Weights pass through 8 host buffers of 200 M elements instead of 5 of 100 M: 2.98 GiB page-locked on each"
            " rank instead of 0.93 GiB",
            paths=("zero_optimization.offload_param.buffer_count", "zero_optimization.offload_param.buffer_size"),
        ),
        Example(
            _WEIGHTS + f'}}, "offload_optimizer": {{{_NVME}}}}}}}',
            _WEIGHTS + f', "buffer_count": 13}}, "offload_optimizer": {{{_NVME}}}}}}}',
            "Weights pass through 13 host buffers of 100 M elements instead of 5 of 100 M: 2.42 GiB page-locked on"
            " each rank instead of 0.93 GiB; with everything else it is",
            world_size=8,
            parameters=7_000_000_000,
        ),
        Example(
            _WEIGHTS + "}}}",
            _WEIGHTS + ', "max_in_cpu": 0}}}',
            "None of the weights of a rank stay in host memory instead of up to 1 G elements, 1.86 GiB in bf16",
        ),
        Example(
            _THREE + ', "offload_optimizer": {"device": "cpu"}}}',
            _STATES + ', "buffer_count": 5}}}',
            "Optimizer states pass through 5 host buffers, each as large as the largest sub-group, at most 18.6 GiB"
            " page-locked on each rank; the default is 4",
        ),
        Example(_STATES + "}}}", _STATES + ', "buffer_count": 4}}}', ""),
    ),
)
def explain_buffers(pair: Pair) -> Iterator[Explained]:
    """Yield what buffers take on the host."""
    move = _number(pair, "offload_optimizer.buffer_count")
    if move is not None:
        was, now = (_staging(side, "sub-groups") for side in (pair.old, pair.new))
        most = say("at most ") if pair.new.context.facts.parameters is None else say("about ")
        end = tail(move, str(move.before), f"{most}{now}" if now else "", was, say(" page-locked on each rank"))
        message = say(
            "Optimizer states pass through {after} host buffers, each as large as the largest sub-group{what}",
            after=move.after,
            what=end if end.startswith(",") else f",{end}",
        )
        yield told(pair, move, message, severity=_more(move), brief=say("{after} swap buffers", after=move.after))
    moves = [_number(pair, f"offload_param.{name}") for name in ("buffer_count", "buffer_size")]
    first = next((one for one in moves if one is not None), None)
    if first is not None:
        more = tuple(one.path for one in moves if one is not None and one is not first)
        severity = Severity.WARNING if any(one and _more(one) is Severity.WARNING for one in moves) else Severity.INFO
        yield told(
            pair, first, _pool(pair, first), severity=severity, more=more, brief=say("another pool of swap buffers")
        )
    move = _number(pair, "offload_param.max_in_cpu")
    if move is not None:
        now, was = (of_weights(pair.new, whole(one) or 0) for one in (move.after, move.before))
        end = tail(move, elements(move.before), now, was)
        message = say(
            "Up to {after} elements of the weights of a rank stay in host memory{end}",
            after=elements(move.after),
            end=end,
        )
        if not move.after:
            message = say(
                "None of the weights of a rank stay in host memory instead of up to {before} elements, {was}",
                before=elements(move.before),
                was=was,
            )
        yield told(pair, move, message, severity=_more(move))


def _number(pair: Pair, name: str) -> Move | None:
    move = moved(pair, name)
    if move is None or whole(move.before) is None or whole(move.after) is None:
        return None
    return move


def _more(move: Move) -> Severity:
    return Severity.WARNING if (whole(move.after) or 0) > (whole(move.before) or 0) else Severity.INFO


def _staging(side: Side, what: str) -> str:
    found = usage(side.context)
    parts = found.select(Place.HOST, (What.STAGING,)) if found is not None else ()
    sizes = [part.bytes or 0 for part in parts if what in part.says]
    return bytes_text(sum(sizes)) if sizes else ""


def _pool(pair: Pair, first: Move) -> str:
    """Return what the pool of buffers for weights was and is."""

    def pool(side: Side) -> tuple[int, int]:
        count = whole(side.value("zero_optimization.offload_param.buffer_count")) or 0
        return count, whole(side.value("zero_optimization.offload_param.buffer_size")) or 0

    (before, size), (after, wide) = pool(pair.old), pool(pair.new)
    now, was = of_weights(pair.new, after * wide).partition(" in ")[0], of_weights(pair.new, before * size)
    message = say("Weights pass through {after} host buffers of {wide} elements", after=after, wide=elements(wide))
    old = say(" instead of {before} of {size}", before=before, size=elements(size)) if not first.begins else ""
    memory = say(": {now} page-locked on each rank", now=now)
    before_that = say(" instead of {partition}", partition=was.partition(" in ")[0]) if old else ""
    return f"{message}{old}{memory}{before_that}{_locked(pair.new)}"


def _locked(side: Side) -> str:
    """Return what a rank has page-locked with everything else, where that is known."""
    found = usage(side.context)
    sizes = [part.bytes for part in found.select(Place.HOST) if part.pinned] if found is not None else []
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(sizes):
        return ""
    return say("; with everything else it is {sum}", sum=bytes_text(sum(known)))


@explanation(
    "DF506",
    "nvme-path",
    summary="Swapped states or weights go to another directory.",
    why=(
        "Files are named by rank alone. Two jobs with one path overwrite each other's optimizer states, and the second"
        " deletes the weights of the first. The directory of optimizer states is never cleaned up."
    ),
    source=(
        "deepspeed/runtime/zero/stage3.py:_configure_tensor_swapping",
        "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:AsyncPartitionedParameterSwapper",
    ),
    examples=(
        Example(
            _STATES + "}}}",
            _STATES.replace("/local", "/scratch") + "}}}",
            "Optimizer states are swapped to `/scratch` instead of `/local`; no other job may use that path",
            paths=("zero_optimization.offload_optimizer.nvme_path",),
            severity=Severity.INFO,
        ),
        Example(
            _THREE + "}}",
            _WEIGHTS + "}}}",
            "Weights are swapped to `/local`; no other job may use that path",
            paths=("zero_optimization.offload_param.nvme_path",),
        ),
        Example(_STATES + "}}}", _STATES.replace("/local", "/local/") + "}}}", ""),
    ),
)
def explain_path(pair: Pair) -> Iterator[Explained]:
    """Yield where files go."""
    for name, what in (
        ("offload_optimizer.nvme_path", say("Optimizer states")),
        ("offload_param.nvme_path", say("Weights")),
    ):
        move = moved(pair, name)
        if move is None:
            continue
        if not isinstance(move.after, str):
            message = say("{what} have no path on NVMe any more, and the engine does not start", what=what)
            yield told(pair, move, message, effects=(Effect.VALIDITY,), severity=Severity.WARNING)
            continue
        was = (
            say(" instead of `{before}`", before=move.before)
            if isinstance(move.before, str) and not move.begins
            else ""
        )
        yield told(
            pair,
            move,
            say(
                "{what} are swapped to `{after}`{was}; no other job may use that path",
                what=what,
                after=move.after,
                was=was,
            ),
        )


@explanation(
    "DF507",
    "swap-pipeline",
    summary="NVMe optimizer states are read ahead, written behind, or written at the start in bulk.",
    why=(
        "Reading the next sub-group and writing the last one while the CPU updates another hides the disk, and keeps"
        " four more buffers in use for each with Adam. With too few of them the step stops."
    ),
    source=("deepspeed/runtime/swap_tensor/pipelined_optimizer_swapper.py:PipelinedOptimizerSwapper",),
    examples=(
        Example(
            _STATES + ', "buffer_count": 8}}}',
            _STATES + ', "buffer_count": 8, "pipeline_read": true}}}',
            "The states of the next sub-group are read while the CPU updates one",
            paths=("zero_optimization.offload_optimizer.pipeline_read",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(_STATES + "}}}", _STATES + ', "pipeline_write": false}}}', ""),
    ),
)
def explain_pipeline(pair: Pair) -> Iterator[Explained]:
    """Yield what runs beside the update."""
    for name, (begins, ends) in _PIPELINE.items():
        for move, on in switched(pair, f"offload_optimizer.{name}"):
            yield told(pair, move, begins if on else ends)


_PIPELINE = {
    "pipeline_read": (
        mark("The states of the next sub-group are read while the CPU updates one"),
        mark("A sub-group is read before the CPU updates it, no longer during the update of another"),
    ),
    "pipeline_write": (
        mark("The states of a sub-group are written while the CPU updates the next one"),
        mark("A sub-group is written before the CPU goes on, no longer during the update of another"),
    ),
    "fast_init": (
        mark(
            "Master weights are written to NVMe at the start in bulk, which takes weight buffers as large as "
            "a sub-group"
        ),
        mark("Master weights are written to NVMe at the start one sub-group after the other"),
    ),
}


@explanation(
    "DF513",
    "muon-momentum",
    summary="Muon's momentum stays in memory with NVMe offload, or is swapped.",
    why="Kept in memory it takes one element per owned parameter and spares a read and a write of each sub-group.",
    source=("deepspeed/runtime/zero/stage3.py:_create_momentum_buffer",),
    examples=(
        Example(
            _STATES + "}}}",
            _STATES + '}, "save_muon_momentum_buffer_in_memory": true}}',
            "Muon's momentum stays in memory, one element per parameter of the shard, and is not swapped to NVMe",
            paths=("zero_optimization.save_muon_momentum_buffer_in_memory",),
            severity=Severity.INFO,
        ),
        Example(_STATES + "}}}", _STATES + '}, "save_muon_momentum_buffer_in_memory": false}}', ""),
    ),
)
def explain_momentum(pair: Pair) -> Iterator[Explained]:
    """Yield where the momentum lies; without Muon there is none."""
    for move, on in switched(pair, "save_muon_momentum_buffer_in_memory"):
        facts = pair.new.context.type_of("optimizer")
        if facts is not None and facts.name != "Muon" and pair.new.value("optimizer.type") is not MISSING:
            message = say("Does nothing: the optimizer is not Muon")
            yield told(pair, move, message, effects=(Effect.NONE,), severity=Severity.NONE)
            continue
        message = (
            say("Muon's momentum stays in memory, one element per parameter of the shard, and is not swapped to NVMe")
            if on
            else say("Muon's momentum is swapped to NVMe with the other states")
        )
        yield told(pair, move, message)
