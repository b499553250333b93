"""DS472: two tensor-parallel sizes, or one in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before
from dsmigrate.rules.zero._shared import given

_SIZE = "tensor_parallel.autotp_size"
_INNER = "tensor_parallel.tp.tp_size"
_SPLITS_SINCE = "0.18.6"
"""Since when `deepspeed.initialize` splits the model."""


@rule(
    "DS472",
    "tensor-parallel-size",
    summary="`tensor_parallel.tp.tp_size` alone or unlike `autotp_size`, or a size that does not divide the ranks.",
    why="`autotp_size` alone splits the model. Without it `tp.tp_size` does nothing and the model stays whole, "
    "without a message; "
    "beside one above 1 it must be 1 or the same number. Before 0.18.6 neither splits the model: "
    "`deepspeed.tp_model_init` in the script does. The size has to divide the number of ranks.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/engine.py:_apply_autotp_partitioning",
        "deepspeed/utils/groups.py:_init_tp_mesh_device",
    ),
    keys=(_SIZE, _INNER),
    examples=(
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"tp": {"tp_size": «2»}}}\n',
            fixed='{"train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"tp": {"tp_size": 2}, "autotp_size": '
            "2}}\n",
            accepted=None,  # two processes
        ),
        Example(
            '{"train_batch_size": 4, "tensor_parallel": {"autotp_size": 4, "tp": {"tp_size": «2»}}}\n',
            fixed='{"train_batch_size": 4, "tensor_parallel": {"autotp_size": 4, "tp": {}}}\n',
            accepted=None,  # four processes
        ),
        Example(
            '{"train_batch_size": 6, "tensor_parallel": {"autotp_size": «4»}}\n',
            facts=Facts(world_size=6),
            accepted=None,  # takes more than one process
        ),
        Example(
            '{"train_batch_size": 4, "tensor_parallel": {"autotp_size": 4, "tp": {"tp_size": 4}}}\n',
            accepted=None,  # four processes
        ),
        Example('{"train_batch_size": 1, "tensor_parallel": {"tp": {"tp_size": 1}}}\n'),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"tp": {"tp_size": «2»}}}\n', version="0.17.1"
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the inner size, or at one that does not fit the ranks."""
    size, inner, world = context.number(_SIZE), context.number(_INNER), context.facts.world_size
    if size is None:
        return
    if inner is not None and given(context, _INNER) is not None and inner != 1:
        splits = not before(context, _SPLITS_SINCE)
        if size <= 1 < inner:
            yield context.finding(
                _INNER,
                say(
                    "{inner} splits nothing: in this release `deepspeed.tp_model_init` in the script splits the model",
                    inner=inner,
                )
                if not splits
                else say(
                    "{inner} splits nothing: {size} decides, and it is {size_2}",
                    inner=inner,
                    size=shown(_SIZE),
                    size_2=size,
                ),
                severity=Severity.WARNING,
                effect=Effect.IGNORED,
                fixes=[]
                if not splits
                else [
                    context.replace(_SIZE, inner, say("Set `autotp_size` to {inner}", inner=inner), safe=False)
                    if context.has(_SIZE)
                    else context.insert(
                        ("tensor_parallel", "autotp_size"),
                        inner,
                        say("Set `autotp_size` to {inner}", inner=inner),
                        safe=False,
                    )
                ],
            )
        elif size > 1 and inner != size and splits:
            yield context.finding(
                _INNER,
                say("{inner} contradicts {size}, which is {size_2}", inner=inner, size=shown(_SIZE), size_2=size),
                fixes=[context.remove(_INNER, say("Remove {inner}", inner=shown(_INNER)), safe=False)],
                related=[(_SIZE, say("this size counts"))],
            )
    if world is not None and size > 1 and world % size and given(context, _SIZE) is not None:
        yield context.finding(
            _SIZE, say("{world} ranks cannot be cut into groups of {size}", world=world, size=int(size))
        )
