"""SuperOffload: CPU Adam in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import moved, switched, tail, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_HOST = '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"'


@explanation(
    "DF508",
    "super-offload",
    summary="CPU Adam of stage 3 runs in a process of its own, or with more or fewer cores.",
    why=(
        "The worker updates a sub-group as soon as its gradients are there, while backward goes on, if gradients are"
        " not clipped: with `gradient_clipping` above 0, which it is unless set, updates wait for the norm. The"
        " moments live in the worker and no checkpoint holds them."
    ),
    source=(
        "deepspeed/runtime/superoffload/superoffload_stage3.py:SuperOffloadOptimizer_Stage3",
        "deepspeed/runtime/superoffload/superoffload_utils.py:superoffload_optimizer_worker",
    ),
    examples=(
        Example(
            _HOST + "}}}",
            _HOST + ', "super_offload": true}}}',
            "CPU Adam runs in a process of its own, after backward because gradients are clipped; its moments are not"
            " in checkpoints, and a resumed run starts with empty ones",
            paths=("zero_optimization.offload_optimizer.super_offload",),
            severity=Severity.WARNING,
        ),
        Example(
            _HOST.replace('"train', '"gradient_clipping": 0, "train') + "}}}",
            _HOST.replace('"train', '"gradient_clipping": 0, "train') + ', "super_offload": true}}}',
            "CPU Adam runs in a process of its own, while backward goes on; its moments are not in checkpoints",
        ),
        Example(
            _HOST + ', "super_offload": true}}}',
            _HOST + ', "super_offload": true, "cpuadam_cores_perc": 0.5}}}',
            "SuperOffload's Adam gets 50 % of the cores of a rank instead of 80 %",
            paths=("zero_optimization.offload_optimizer.cpuadam_cores_perc",),
            effects=(Effect.SPEED,),
        ),
        Example(_HOST + "}}}", _HOST + ', "super_offload": false}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what the worker does, and what checkpoints lose."""
    for move, on in switched(pair, "offload_optimizer.super_offload"):
        clips = pair.new.number("gradient_clipping")
        when = (
            say("after backward because gradients are clipped")
            if clips is None or clips > 0
            else say("while backward goes on")
        )
        message = (
            say(
                "CPU Adam runs in a process of its own, {when}; its moments are not in checkpoints, and a "
                "resumed run starts with empty ones",
                when=when,
            )
            if on
            else say("CPU Adam runs in the training process, and its moments are in checkpoints again")
        )
        effects = (Effect.MEMORY, Effect.SPEED, Effect.CHECKPOINT)
        brief = say("Adam {word}", word=say("in a process of its own") if on else say("in the training process"))
        yield told(pair, move, message, effects=effects, severity=Severity.WARNING, brief=brief)
    cores = moved(pair, "offload_optimizer.cpuadam_cores_perc")
    if cores is None:
        return
    after, before = cores.after, cores.before
    if isinstance(after, (int, float)) and isinstance(before, (int, float)):
        share = say(
            "{number} % of the cores of a rank{tail}",
            number=f"{100 * float(after):g}",
            tail=tail(cores, f"{100 * float(before):g} %"),
        )
        yield told(pair, cores, say("SuperOffload's Adam gets {share}", share=share))
