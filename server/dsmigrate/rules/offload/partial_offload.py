"""DS525: part of the optimizer on the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before
from dsmigrate.rules.zero._shared import ZERO, given, offloads_optimizer

_KEY = f"{ZERO}.offload_optimizer.ratio"
_CHECKED_SINCE = "0.15.0"
"""Before, the check found no section to look at."""
_ADAM = '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '


@rule(
    "DS525",
    "partial-offload",
    summary="`offload_optimizer.ratio` below 1, which some configs refuse, and which splits the optimizer in two.",
    why="A ratio below 1 is a ValidationError at stage 0, 1 and 2 from 0.15.0 on, offloaded or not. At stage 3 the "
    "part on the GPU is updated by a "
    "copy of the optimizer that DeepSpeed makes of `DeepSpeedCPUAdam` only, which Adam and AdamW become without "
    "`torch_adam`. That copy takes the learning rate once, when it is made: a schedule moves that of the part on the "
    "CPU alone. No checkpoint has its states. With NVMe every part comes into host memory to be updated: older "
    'releases stop there with "expected input to be on cuda".',
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/config.py:offload_ratio_check",
        "deepspeed/runtime/zero/stage3.py:DeepSpeedZeroOptimizer_Stage3.__init__",
        "deepspeed/runtime/zero/stage3.py:DeepSpeedZeroOptimizer_Stage3._rigid_state_dict",
        "https://github.com/deepspeedai/DeepSpeed/issues/4872",
    ),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": «0.5»}}}\n',
            fixed='{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_allow_untested_optimizer": true, "optimizer": {"type": "SGD", "params": '
            '{"lr": 0.001}}, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": '
            "«0.5»}}}\n",
            fixed='{"train_batch_size": 1, "zero_allow_untested_optimizer": true, "optimizer": {"type": "SGD", '
            '"params": '
            '{"lr": 0.001}}, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/l", '
            '"ratio": «0.5»}}}\n',
            fixed='{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/l"}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": «0.5»}}}\n',
            fixed='{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_optimizer": {"ratio": 1.0}}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the ratio."""
    ratio = context.number(_KEY)
    if given(context, _KEY) is None or ratio is None or not 0 <= ratio < 1 or context.stage is None:
        return
    kind, severity, effect = context.type_of("optimizer"), None, None
    if context.stage != 3:
        if before(context, _CHECKED_SINCE):
            return
        told = say(
            "{ratio} is refused at stage {stage}: partial offload is for stage 3",
            ratio=json_text(ratio),
            stage=context.stage,
        )
    elif context.device("offload_optimizer") == "nvme":
        told = say("`ratio` is for `device` cpu: what is on NVMe is updated in host memory, no part of it on the GPU")
        severity, effect = Severity.WARNING, Effect.RISKY
    elif offloads_optimizer(context) and kind is not None and not _is_cpu_adam(context, kind.name):
        told = say("partial offload needs DeepSpeed's CPU Adam, which `{kind_name}` is not here", kind_name=kind.name)
    elif offloads_optimizer(context):
        told = say(
            "the part on the GPU has an optimizer of its own: no schedule reaches its learning rate, and no checkpoint "
            "has its states"
        )
        severity, effect = Severity.WARNING, Effect.RISKY
    else:
        return
    safe = context.stage != 3 and not offloads_optimizer(context)
    removal = context.remove(_KEY, say("Remove {key}", key=shown(_KEY)), safe=safe)
    yield context.finding(_KEY, told, severity=severity, effect=effect, fixes=[removal])


def _is_cpu_adam(context: Context, name: str) -> bool:
    params = context.raw("optimizer.params")
    torch = isinstance(params, dict) and bool(params.get("torch_adam"))
    return name.lower() in {"adam", "adamw"} and not torch
