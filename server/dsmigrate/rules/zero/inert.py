"""DS401: a key that ZeRO does not look at in this file."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Key
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, PARAM_DEVICE, STAGE, ZERO, alternatives, given

_ELSEWHERE = frozenset(
    {
        f"{ZERO}.compute_grad_norm",  # refused, not ignored
        f"{ZERO}.elastic_checkpoint",  # still slows loading down
        f"{ZERO}.legacy_stage1",
        f"{ZERO}.offload_param",
        f"{ZERO}.cpu_offload_param",
        f"{ZERO}.offload_optimizer.super_offload",
        f"{ZERO}.offload_optimizer.cpuadam_cores_perc",
        "bf16.bf16_master_weights_and_grads",
        "bf16.bf16_optimizer_states",
        "fp16.fp16_master_weights_and_grads",
        "prescale_gradients",
    }
)
"""Keys whose stage has a rule of its own."""

_CONSENT = "zero_allow_untested_optimizer"
"""Asks for nothing: without ZeRO the consent is not needed."""
_HARMLESS = frozenset({f"{ZERO}.stage3_gather_16bit_weights_on_model_save", _CONSENT})
"""Switches that lose nothing where they do nothing."""


@rule(
    "DS401",
    "inert-at-stage",
    summary="A key that does nothing at this ZeRO stage, or for this offload device.",
    why="DeepSpeed accepts every key of ZeRO at every stage and reads only those of the stage in use, without a "
    "message. The "
    "same holds for keys of NVMe offload on another device, and for keys outside the section that need ZeRO.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/engine.py:_configure_zero_optimizer", "deepspeed/runtime/zero/config.py"),
    keys=(
        f"{ZERO}.sub_group_size",
        f"{ZERO}.stage3_prefetch_bucket_size",
        f"{ZERO}.round_robin_gradients",
        f"{ZERO}.zero_quantized_weights",
        f"{ZERO}.zero_hpz_partition_size",
        f"{ZERO}.leaf_module",
        f"{ZERO}.ignore_unused_parameters",
    ),
    pains=(8,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"stage3_max_live_parameters": 1e9», '
            '«"zero_quantized_weights": true»}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, «"allgather_bucket_size": 5e8», '
            '«"round_robin_gradients": true»}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"leaf_module": {"classes": ["Block"]}»}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 3, "offload_optimizer": {"device": "cpu", «"buffer_count": 8»}}}\n',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"ignore_unused_parameters": false»}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 0}, "checkpoint": {«"load_universal": true»}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 0}, "checkpoint": {}}\n',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "zero_quantized_weights": false}}\n'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_bucket_size": 5e8}}\n'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3, "max_live_parameters": 1e9}}\n'),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": "auto", "sub_group_size": 1e9}}\n',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "none", '
            '"pin_memory": true}}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key whose conditions on ZeRO are not met; a section is told once."""
    if context.raw(STAGE) == "auto" or context.stage is None:
        return
    for entry in context.entries:
        if entry.key is None or not _is_told(context, entry, entry.key):
            continue
        unmet = _unmet(context, entry.key)
        around = context.known.key(entry.path[:-1])
        if unmet is None or (around is not None and around.path != ZERO and _unmet(context, around) is not None):
            continue
        lost = entry.node is not None and entry.node.value() is True and entry.key.path not in _HARMLESS
        yield context.finding(
            entry,
            say("{path} does nothing {unmet}", path=shown(entry.path), unmet=unmet),
            part="member",
            severity=Severity.WARNING if lost else Severity.HINT if entry.key.path == _CONSENT else None,
            fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)],
            tags=[Tag.UNNECESSARY],
        )


def _is_told(context: Context, entry: Entry, key: Key) -> bool:
    if entry.node is None or key.path in _ELSEWHERE or key.dead or given(context, key.path) != entry:
        return False
    inside = key.path.startswith(f"{ZERO}.")
    if inside and context.stage == 0:
        return False  # DS400 tells it once
    value = entry.node.value()
    if value is None or value == "auto" or (value == key.default and (isinstance(value, bool) or not inside)):
        return False
    if key.path == f"{ZERO}.offload_optimizer.ratio" and value != 1:
        return context.stage == 3  # elsewhere it is refused
    # Every file copies this one, and it is harmless: at stage 1 and 2 only ZenFlow looks at it.
    return not (key.path == f"{ZERO}.allgather_bucket_size" and context.stage in {1, 2})


def _unmet(context: Context, key: Key) -> str | None:
    """Return the first condition on ZeRO that is not met, in words; None when there is none, or it is unknown."""
    inside = key.path.startswith(f"{ZERO}.")
    for path, wanted in key.effective_when.items():
        if path == STAGE:
            if context.stage is not None and context.stage not in wanted:
                return say(
                    "at ZeRO stage {stage}: it is for stage {replace}",
                    stage=context.stage,
                    replace=alternatives(wanted).replace("`", ""),
                )
        elif not path.startswith(f"{ZERO}."):
            if _held(context, path) not in wanted:
                return None  # said where that feature is checked
        elif inside:
            held = _held(context, path)
            if held is UNKNOWN or held in wanted:
                continue
            if path.endswith(".device") and held == "none" and key.path.startswith(path.removesuffix("device")):
                return None  # the section is off as a whole
            return say(
                "while {path} is `{held}`: it needs {alternatives}",
                path=shown(path),
                held=json_text(held),
                alternatives=alternatives(wanted),
            )
    return None


def _held(context: Context, path: str) -> object:
    if path in {OPTIMIZER_DEVICE, PARAM_DEVICE}:
        device = context.device("offload_optimizer" if path == OPTIMIZER_DEVICE else "offload_param")
        return UNKNOWN if device is None else device
    value = context.value(path)
    return UNKNOWN if value is UNKNOWN or isinstance(value, (dict, list)) else value
