"""Model states on the GPU, on the host and on NVMe: how much the stage and offload make of them."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._figures import Figures, both, figures, grows, taken_for_granted
from dsmigrate.diff.explanations.zero._shared import STAGE, ZERO
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import capital
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.languages import mark, say
from dsmigrate.memory import Place, Usage, What

_DECIDE = (
    STAGE,
    f"{ZERO}.offload_optimizer.device",
    f"{ZERO}.offload_param.device",
    f"{ZERO}.offload_optimizer.ratio",
    f"{ZERO}.zero_hpz_partition_size",
)
_FORMATS = (
    "fp16.enabled",
    "bf16.enabled",
    "fp16.fp16_master_weights_and_grads",
    "bf16.bf16_master_weights_and_grads",
    "bf16.bf16_optimizer_states",
    "data_types.grad_accum_dtype",
)
_OPTIMIZER = ("optimizer.type",)
_BF16 = '"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": true}'
_ADAMW = f'{{{_BF16}, "optimizer": {{"type": "AdamW", "params": {{}}}}, "zero_optimization"'


@explanation(
    "DF401",
    "model-state-memory",
    summary="Weights, gradients and optimizer states take more or less memory of the GPU, the host or NVMe.",
    why=(
        "Each stage shards one thing more over the N GPUs, and offload moves shards to the host or to NVMe. For 16-bit"
        " weights, Adam and Ψ parameters a GPU holds 16Ψ bytes at stage 0, 4Ψ + 12Ψ/N at stage 1, 2Ψ + 14Ψ/N at stage 2"
        " and 16Ψ/N at stage 3; fp32 weights have a master copy from stage 1 on. Buckets, gathered parameters,"
        " activations and the fp32 gradients of the step come on top."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",
        "deepspeed/runtime/zero/stage3.py:_create_fp32_partitions",
        "deepspeed/runtime/zero/stage3.py:_setup_for_real_optimizer",
    ),
    examples=(
        Example(
            _ADAMW + ': {"stage": 2}}',
            _ADAMW + ': {"stage": 3}}',
            "Model states per GPU: 2Ψ + 14Ψ/N → 16Ψ/N bytes (Ψ parameters, N GPUs)",
            paths=(STAGE,),
            effects=(Effect.MEMORY,),
            severity=Severity.INFO,
        ),
        Example(
            _ADAMW + ': {"stage": 2}}',
            _ADAMW + ': {"stage": 3}}',
            "Model states per GPU: 24.4 GiB → 13 GiB (7B parameters, 8 GPUs)",
            world_size=8,
            parameters=7_000_000_000,
        ),
        Example(
            _ADAMW + ': {"stage": 1}}',
            _ADAMW + ': {"stage": 0}}',
            "Model states per GPU: 4Ψ + 12Ψ/N → 16Ψ bytes",
            severity=Severity.WARNING,
        ),
        Example(
            _ADAMW + ': {"stage": 3}}',
            _ADAMW + ': {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}}',
            "Model states per GPU: 16Ψ/N → 0 bytes; host memory of each rank: 0 → 20Ψ/N bytes",
            paths=("zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"),
            severity=Severity.WARNING,
        ),
        Example(
            _ADAMW + ': {"stage": 2}}',
            _ADAMW.replace("true", "false") + ': {"stage": 2}}',
            "Model states per GPU: 2Ψ + 14Ψ/N → 4Ψ + 16Ψ/N bytes",
            paths=("bf16.enabled",),
            severity=Severity.WARNING,
        ),
        Example(
            _ADAMW + ': {"stage": 2}}',
            _ADAMW.replace("AdamW", "Lion") + ': {"stage": 2}}',
            "Model states per GPU: 2Ψ + 14Ψ/N → 2Ψ + 10Ψ/N bytes (Ψ parameters, N GPUs)",
            paths=("optimizer.type",),
        ),
        Example(_ADAMW + ': {"stage": 2}}', _ADAMW.replace("bf16", "fp16") + ': {"stage": 2}}', ""),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            "Model states per GPU: 8Ψ + 12Ψ/N → 4Ψ + 16Ψ/N bytes (Ψ parameters, N GPUs; assuming an optimizer with two"
            " states per parameter, as Adam)",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield the memory of both sides where a key of ZeRO changes it."""
    if any(_in_groups(side) for side in (pair.old, pair.new)):
        return
    about = tuple(path for path in _deciding(pair) if pair.change(path) is not None)
    found = {place: figures(pair, place) for place in Place} if about else {}
    if not any(found.values()):
        return
    clauses = [
        say("{place}: {size}", place=say(_NAMES[place]), size=_written(one))
        for place, one in found.items()
        if one is not None
    ]
    more = any(one is not None and grows(pair, place) for place, one in found.items())
    yield pair.says(
        *about,
        effects=(Effect.MEMORY,),
        severity=Severity.WARNING if more else Severity.INFO,
        message=say("{what} ({given})", what=capital(say("; ").join(clauses)), given=taken_for_granted(pair)),
        brief=_brief(found),
    )


def _deciding(pair: Pair) -> Iterator[str]:
    """Yield the keys that can change what is held: those of formats and of the optimizer where widths differ."""
    yield from _DECIDE
    found = both(pair)
    if found is None:
        return
    if any(len(set(widths)) > 1 for widths in zip(*(_widths(side) for side in (pair.old, pair.new)), strict=True)):
        yield from _FORMATS
    if len({_elements(one) for one in found}) > 1:
        yield from _OPTIMIZER


def _widths(side: Side) -> tuple[int, ...]:
    """Return the bytes of an element of weights, sums and master weights; 2 for the first two where that is open."""
    formats = precision(side.context)
    return tuple(WIDTHS[one or "bf16"] for one in (formats.weights, formats.sums, formats.masters or "fp32"))


def _elements(found: Usage) -> float:
    """Return the elements of optimizer state per element of master weights, or per weight where there are none."""
    states, masters = (found.select(what=(what,)) for what in (What.OPTIMIZER, What.MASTERS))
    return sum(part.width for part in states) / (sum(part.width for part in masters) or 4)


def _in_groups(side: Side) -> bool:
    """Return whether MiCS of older releases shards over a group, which the figures know nothing of."""
    path = f"{ZERO}.mics_shard_size"
    return side.reads(path) and (side.number(path) or 0) > 0


_NAMES = {
    Place.GPU: mark("model states per GPU"),
    Place.HOST: mark("host memory of each rank"),
    Place.NVME: mark("space on NVMe of each rank"),
}


def _written(one: Figures) -> str:
    return one.bytes or one.formula


def _brief(found: dict[Place, Figures | None]) -> str:
    on_gpu, on_host = found.get(Place.GPU), found.get(Place.HOST)
    if on_gpu is not None:
        return (
            say("model states {percent} per GPU", percent=on_gpu.percent)
            if on_gpu.percent
            else say("model states per GPU {before} → {after}", before=on_gpu.before, after=on_gpu.after)
        )
    if on_host is not None:
        return say("host memory per rank {what}", what=on_host.bytes or f"{on_host.before} → {on_host.after}")
    return ""
