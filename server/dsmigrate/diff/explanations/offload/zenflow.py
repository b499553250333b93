"""ZenFlow: important columns on the GPU at once, the rest on the CPU now and then."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import ZERO, moved, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.batch import replaced_steps
from dsmigrate.languages import mark, say

_SECTION = f"{ZERO}.zenflow"
_HOST = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}'
_FOUR = _HOST + ', "zenflow": {"update_interval": 4'


@explanation(
    "DF510",
    "zenflow",
    summary="ZenFlow begins or ends: which weights are updated when, and what accumulates.",
    why=(
        "The presence of the section turns it on. The columns with the largest gradients are updated on the GPU in"
        " every micro-batch, the others on the CPU every `update_interval` micro-batches. That number takes the place"
        " of `gradient_accumulation_steps` in the whole engine, and the learning rate moves in every micro-batch."
    ),
    source=(
        "deepspeed/runtime/zenflow/engine.py:configure_zenflow",
        "deepspeed/runtime/zenflow/zenflow_stage_1_and_2.py:ZenFlowZeroOptimizer",
    ),
    examples=(
        Example(
            _HOST + "}}",
            _FOUR + "}}}",
            "ZenFlow updates the most important columns on the GPU in every micro-batch and the others on the CPU"
            " every 4, which takes the place of `gradient_accumulation_steps`",
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            _FOUR + "}}}",
            _HOST + "}}",
            "All weights are updated together again, once per `gradient_accumulation_steps`; ZenFlow is off",
            severity=Severity.WARNING,
        ),
        Example(_HOST + "}}", _HOST + ', "zenflow": null}}', ""),
    ),
)
def explain_presence(pair: Pair) -> Iterator[Explained]:
    """Yield what ZenFlow does to the rhythm of updates."""
    before, after = (replaced_steps(side.context) for side in (pair.old, pair.new))
    about = tuple(path for path in pair.changes if path == _SECTION or path.startswith(f"{_SECTION}."))
    if bool(before) is bool(after) or not about or not pair.new.context.stage or not pair.old.context.stage:
        return
    if after:
        interval = say("every {after}", after=after) if after.isdecimal() else say("when it decides")
        message = say(
            "ZenFlow updates the most important columns on the GPU in every micro-batch and the others on "
            "the CPU {interval}, which takes the place of `gradient_accumulation_steps`",
            interval=interval,
        )
    else:
        message = say("All weights are updated together again, once per `gradient_accumulation_steps`; ZenFlow is off")
    effects = (Effect.NUMERICS, Effect.MEMORY, Effect.SPEED)
    brief = "ZenFlow" if after else say("no ZenFlow")
    yield pair.says(*about, effects=effects, severity=Severity.WARNING, message=message, brief=brief)


@explanation(
    "DF511",
    "zenflow-settings",
    summary="ZenFlow updates other columns, at another rhythm, or elsewhere.",
    why=(
        "What is selected is updated in every micro-batch with fresh moments, what is not waits for the CPU: share and"
        " intervals decide how much of the model learns from which gradient."
    ),
    source=(
        "deepspeed/runtime/zenflow/zenflow_stage_1_and_2.py:ZenFlowZeroOptimizer",
        "deepspeed/runtime/zenflow/zenflow_config.py:ZenFlowConfig",
    ),
    examples=(
        Example(
            _FOUR + "}}}",
            _FOUR + ', "topk_ratio": 0.05}}}',
            "On the GPU 5 % of the columns of each matrix are updated instead of 10 %",
            paths=("zero_optimization.zenflow.topk_ratio",),
            severity=Severity.WARNING,
        ),
        Example(
            _FOUR + "}}}",
            _HOST + ', "zenflow": {"update_interval": 8}}}',
            "Columns that are not selected are updated every 8 micro-batches instead of 4, which is also what the"
            " engine accumulates over",
        ),
        Example(
            _FOUR + "}}}",
            _FOUR + ', "overlap_step": true}}}',
            "The CPU update runs in a process of its own, and its result arrives one interval late",
        ),
        Example(_FOUR + "}}}", _FOUR + ', "topk_ratio": 0.1}}}', ""),
    ),
)
def explain_settings(pair: Pair) -> Iterator[Explained]:
    """Yield what a setting changes while ZenFlow is on."""
    if not all(replaced_steps(side.context) for side in (pair.old, pair.new)):
        return
    for name in _TEXTS:
        move = moved(pair, f"zenflow.{name}")
        if move is None:
            continue
        message = _message(name, move.before, move.after)
        numbers = name not in {"offload", "pt_reserved_cores_perc"}
        severity = Severity.WARNING if numbers else Severity.INFO
        yield told(
            pair, move, message, severity=severity, brief=say("ZenFlow's `{name}`", name=name) if numbers else ""
        )


_TEXTS = {
    "topk_ratio": mark("On the GPU {new} of the columns of each matrix are updated instead of {old}"),
    "update_interval": mark(
        "Columns that are not selected are updated every {new} micro-batches instead of {old}, which is "
        "also what the engine accumulates over"
    ),
    "select_interval": mark("Columns are selected anew every {new} instead of {old}, in units of `select_strategy`"),
    "select_strategy": mark("The interval of the selection counts by {new} instead of {old}"),
    "steps_per_epoch": mark("An epoch counts as {new} micro-batches for the selection instead of {old}"),
    "full_warm_up_rounds": mark("The first {new} micro-batches each end in a full update on the CPU instead of {old}"),
    "auto_ratio": mark(
        "In automatic mode the CPU updates when {new} of the weights have crossed the line instead of {old}"
    ),
    "pt_reserved_cores_perc": mark("The training process keeps {new} of the cores instead of {old}"),
    "overlap_step": "",
    "offload": "",
}
_SHARES = frozenset({"topk_ratio", "auto_ratio", "pt_reserved_cores_perc"})


def _message(name: str, before: object, after: object) -> str:
    if name == "overlap_step":
        return (
            say("The CPU update runs in a process of its own, and its result arrives one interval late")
            if after
            else say("The CPU update runs in the training process, and its result counts at once")
        )
    if name == "offload":
        return (
            say("The moments of the selected columns lie in host memory and come to the GPU for each update")
            if after
            else say("The moments of the selected columns stay on the GPU")
        )
    return say(_TEXTS[name], new=_shown(name, after), old=_shown(name, before))


def _shown(name: str, value: object) -> str:
    if name in _SHARES and isinstance(value, (int, float)):
        return f"{100 * value:g} %"
    return str(value) if isinstance(value, (int, float)) else shown(value)
