"""DS545: SuperOffload where it does nothing, fails, or cannot overlap."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, ZERO, switched_on

_KEY = f"{ZERO}.offload_optimizer.super_offload"
_CORES = f"{ZERO}.offload_optimizer.cpuadam_cores_perc"
_ADAM = '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '


@rule(
    "DS545",
    "super-offload",
    summary="SuperOffload below stage 3, with clipping, with another optimizer than Adam, or without cores of its own.",
    why="Below stage 3 the key is ignored without a message. At stage 3 it runs Adam in a process of its own, "
    "during backward only "
    "while `gradient_clipping` is 0, and clipping is 1.0 unless set. Other optimizers lack the betas that it asks "
    "for, and a "
    "`cpuadam_cores_perc` of 0 is a ValueError at start.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/engine.py:_configure_zero_optimizer",
        "deepspeed/runtime/superoffload/superoffload_stage3.py:SuperOffloadOptimizer_Stage3",
    ),
    keys=(_KEY, _CORES),
    examples=(
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "super_offload": «true»}}}\n',
            fixed='{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "super_offload": «true»}}}\n',
            accepted=None,  # CUDA only
        ),
        Example(
            '{"train_batch_size": 1, "gradient_clipping": 0, ' + _ADAM + '"zero_optimization": {"stage": 3, '
            '"offload_optimizer": {"device": "cpu", "super_offload": true, "cpuadam_cores_perc": «0.0»}}}\n',
            accepted=None,  # CUDA only
        ),
        Example(
            '{"train_batch_size": 1, "gradient_clipping": 0, ' + _ADAM + '"zero_optimization": {"stage": 3, '
            '"offload_optimizer": {"device": "cpu", "super_offload": true}}}\n',
            accepted=None,  # CUDA only
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the switch, or at the cores."""
    entry = switched_on(context, _KEY)
    if entry is None or context.stage is None:
        return
    if context.stage != 3 or context.device("offload_optimizer") == "none":
        reason = (
            say("at stage {stage}", stage=context.stage)
            if context.stage != 3
            else say("while {optimizer_device} is none", optimizer_device=shown(OPTIMIZER_DEVICE))
        )
        fix = context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=context.stage != 3)
        yield context.finding(entry, say("SuperOffload does nothing {reason}", reason=reason), fixes=[fix])
        return
    kind, clipping = context.type_of("optimizer"), context.number("gradient_clipping")
    if kind is not None and kind.name.lower() not in {"adam", "adamw"}:
        told = say("SuperOffload runs Adam; `{kind_name}` fails when the engine is built", kind_name=kind.name)
        yield context.finding(entry, told, severity=Severity.ERROR, effect=Effect.CRASH)
    elif clipping and clipping > 0 and context.value("gradient_clipping") is not UNKNOWN:
        default = "" if context.has("gradient_clipping") else say(", the default")
        yield context.finding(
            entry,
            say(
                "SuperOffload updates during backward only without clipping, and `gradient_clipping` is "
                "{clipping}{default}",
                clipping=json_text(clipping),
                default=default,
            ),
            severity=Severity.HINT,
            effect=Effect.SLOW,
        )
    if context.has(_CORES) and context.number(_CORES) == 0:
        told = say("0 leaves SuperOffload no core, a ValueError when the engine starts")
        yield context.finding(_CORES, told, severity=Severity.ERROR, effect=Effect.CRASH)
