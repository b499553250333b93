"""What ZeRO checks in a step: unused parameters, the gradient norm, whether ranks agree."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import switched, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark

_OFF = '"offload_optimizer": {"device": "cpu"}'
_TWO = '{"train_batch_size": 8, "gradient_clipping": 0.0, "zero_optimization": {"stage": 2'
_TEXTS = {
    "ignore_unused_parameters": (
        mark("Trainable parameters that took no part in the loss are accepted again"),
        mark("A trainable parameter that took no part in the loss stops the step with an AssertionError"),
    ),
    "compute_grad_norm": (
        mark(
            "Each step computes the norm of the gradients again, with an all-reduce, and "
            "`get_global_grad_norm` returns it"
        ),
        mark("No step computes the norm of the gradients any more, and `get_global_grad_norm` returns None"),
    ),
    "enable_sanity_checks": (
        mark(
            "Ranks compare what they reduce, with a collective for each bucket, and edits of gathered "
            "weights are looked for"
        ),
        mark(
            "Ranks no longer compare what they reduce, and unsynchronised edits of gathered weights are lost silently"
        ),
    ),
    "log_trace_cache_warnings": (
        mark("Rank 0 prints when the recorded order of modules is thrown away, and prefetching with it"),
        mark("Rank 0 no longer prints when the recorded order of modules is thrown away"),
    ),
}
_MAY_STOP = frozenset({"ignore_unused_parameters"})
_EFFECTS = {"enable_sanity_checks": (Effect.SPEED,)}
"""What a check touches in a run that passes it, where the facts of the key say more."""


@explanation(
    "DF425",
    "zero-checks",
    summary="ZeRO begins or ceases to check something in each step.",
    why=(
        "The checks cost a collective or nothing, and change no number: the gradient norm that nobody reads, parameters"
        " without a gradient when the optimizer is offloaded, ranks that disagree at stage 3."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:complete_grad_norm_calculation_for_cpu_offload",
        "deepspeed/runtime/zero/stage_1_and_2.py:step",
        "deepspeed/runtime/zero/stage3.py:__reduce_and_partition_ipg_grads",
        "deepspeed/runtime/zero/partitioned_param_coordinator.py:trace_prologue",
    ),
    examples=(
        Example(
            f"{_TWO}, {_OFF}}}}}",
            f'{_TWO}, {_OFF}, "ignore_unused_parameters": false}}}}',
            "A trainable parameter that took no part in the loss stops the step with an AssertionError",
            paths=("zero_optimization.ignore_unused_parameters",),
            effects=(Effect.VALIDITY,),
            severity=Severity.WARNING,
        ),
        Example(
            f"{_TWO}}}}}",
            f'{_TWO}, "compute_grad_norm": false}}}}',
            "No step computes the norm of the gradients any more",
            severity=Severity.INFO,
        ),
        Example(f"{_TWO}}}}}", f'{_TWO}, "ignore_unused_parameters": false}}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what is checked now."""
    for name, (begins, ends) in _TEXTS.items():
        for move, on in switched(pair, name):
            stops = name in _MAY_STOP and not on
            severity = Severity.WARNING if stops else Severity.INFO
            yield told(pair, move, begins if on else ends, severity=severity, effects=_EFFECTS.get(name, ()))
