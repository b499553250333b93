"""DS477: AutoEP keys that exclude or need each other."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import given, offloads_optimizer

_E = "expert_parallel"
_TP = "tensor_parallel.autotp_size"
Clash = tuple[bool, str, str, str | None]


@rule(
    "DS477",
    "expert-parallel-companions",
    summary="Keys of `expert_parallel` that need or exclude one another, tensor parallelism or offload.",
    why="When it starts with `enabled`, the engine refuses combinations that AutoEP does not implement, among them "
    "a fused kernel "
    "beside the route that would not use it, DeepEP without a token limit, and most things together with "
    "`autotp_size`.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/module_inject/auto_ep_config.py:validate_autoep_config",
        "deepspeed/module_inject/auto_ep_folding.py:validate_folding_global",
    ),
    since="0.19.2",
    keys=(_E, f"{_E}.comm_max_tokens_per_rank", f"{_E}.row_weighting_impl", f"{_E}.gate_up_impl", f"{_E}.combine_impl"),
    examples=(
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "comm_backend": «"deepep"»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "row_weighting_impl": «"fused"»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": '
            '{"enabled": true, "gate_up_impl": «"fused"», "use_grouped_mm": false}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": '
            '{"enabled": true, "num_expert_groups": 2, "num_limited_groups": «4»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "tensor_parallel": {"preset_model": "llama"}, "expert_parallel": '
            '{"enabled": true, "preset_model": «"mixtral"»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 4, "tensor_parallel": {"autotp_size": 2}, "expert_parallel": '
            '{"enabled": true, "autoep_size": «1»}}\n',
            accepted=None,  # takes four processes
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": '
            '{"enabled": true, "comm_backend": "deepep", "comm_max_tokens_per_rank": 4096}}\n'
        ),
        Example('{"train_batch_size": 1, "expert_parallel": {"enabled": false, "comm_backend": "deepep"}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the key to change, for each combination that is refused."""
    if not context.is_on(f"{_E}.enabled"):
        return
    folded = (context.number(_TP) or 0) > 1
    for clash, path, told, other in (*_own(context, folded=folded), *_folded(context, folded=folded)):
        if clash:
            where = path if context.has(path) else f"{_E}.enabled"
            related = [(other, say("together with this"))] if other and context.has(other) else []
            yield context.finding(where, told, related=related)


def _own(context: Context, *, folded: bool) -> Iterator[Clash]:
    value = {key.name: context.value(key.path) for key in context.known.children(_E)}
    deepep = value.get("comm_backend") == "deepep"
    size = context.number(f"{_E}.autoep_size") or 0
    limited, groups = context.number(f"{_E}.num_limited_groups"), context.number(f"{_E}.num_expert_groups")
    yield (
        deepep and value.get("comm_max_tokens_per_rank") == 0,
        f"{_E}.comm_backend",
        say("DeepEP needs a positive `comm_max_tokens_per_rank`, which is 0 unless set"),
        f"{_E}.comm_max_tokens_per_rank",
    )
    yield (
        value.get("row_weighting_impl") == "fused" and (not deepep or size == 1),
        f"{_E}.row_weighting_impl",
        say("`fused` runs only with `comm_backend` deepep and an `autoep_size` above 1"),
        f"{_E}.autoep_size" if deepep else f"{_E}.comm_backend",
    )
    yield (
        value.get("gate_up_impl") == "fused" and not context.is_on(f"{_E}.use_grouped_mm"),
        f"{_E}.gate_up_impl",
        say("`fused` needs `use_grouped_mm`"),
        f"{_E}.use_grouped_mm",
    )
    yield (
        value.get("combine_impl") == "fused_weighted_sum" and ((deepep and size > 1) or folded),
        f"{_E}.combine_impl",
        say(
            "`fused_weighted_sum` is refused together with {word}",
            word=say("tensor parallelism") if folded else say("DeepEP"),
        ),
        _TP if folded else f"{_E}.comm_backend",
    )
    yield (
        limited is not None and groups is not None and limited > groups >= 1,
        f"{_E}.num_limited_groups",
        say("{limited} groups cannot be chosen from {groups}", limited=limited, groups=groups),
        f"{_E}.num_expert_groups",
    )
    other = context.value("tensor_parallel.preset_model")
    yield (
        isinstance(other, str) and isinstance(value.get("preset_model"), str) and other != value.get("preset_model"),
        f"{_E}.preset_model",
        say("{what} names another model", what=shown("tensor_parallel.preset_model")),
        "tensor_parallel.preset_model",
    )


def _folded(context: Context, *, folded: bool) -> Iterator[Clash]:
    size = context.number(f"{_E}.autoep_size")
    yield (
        folded and size == 1,
        f"{_E}.autoep_size",
        say("with {tp} above 1 it must be above 1, too", tp=shown(_TP)),
        _TP,
    )
    yield (
        folded and context.is_on(f"{_E}.async_split_plan") is True and size is not None and size > 1,
        f"{_E}.async_split_plan",
        say("true is refused together with {tp} above 1", tp=shown(_TP)),
        _TP,
    )
    shared = "use_data_before_expert_parallelism"
    yield folded and bool(context.is_on(shared)), shared, say("AutoEP with tensor parallelism refuses it"), _TP
    deepcompile = "compile.deepcompile"
    yield (
        folded and bool(context.is_on(deepcompile)),
        deepcompile,
        say("AutoEP with tensor parallelism refuses it"),
        _TP,
    )
    device = "zero_optimization.offload_optimizer.device"
    told = say("AutoEP with tensor parallelism refuses offload")
    yield folded and offloads_optimizer(context) and given(context, device) is not None, device, told, _TP
