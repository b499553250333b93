"""DS390: a key whose conditions do not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.knowledge import MISSING, Consumer, Key, Status, paths
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.precision._shared import bf16_is_on, bf16_section
from dsmigrate.rules.registry import rule

_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})
_ZERO = "zero_optimization"
_SWITCHES = frozenset({"enabled", "deepcompile"})
_TOLD_ELSEWHERE = frozenset({"prescale_gradients", "gradient_predivide_factor", "bf16.bf16_optimizer_states"})


@rule(
    "DS390",
    "inert-key",
    summary="A key that does nothing, because the switch or mode that it belongs to is not on.",
    why="Many keys count only while another one has a certain value: the dynamic loss-scale keys while "
    "`fp16.loss_scale` is 0, the keys of a section while its `enabled` is true. DeepSpeed reads them and does "
    "nothing, without a message. A section without its `enabled` is off, whatever else stands in it. Nothing is "
    "said of a section that is switched off by name, or of keys that only repeat their default.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/precision_config.py:dynamic_loss_scale_args", "deepspeed/monitor/config.py"),
    keys=("fp16.loss_scale_window", "fp16.min_loss_scale", "torch_autocast.dtype", "comms_logger.prof_ops"),
    examples=(
        Example(
            '{"train_batch_size": 1, «"tensorboard"»: {"output_path": "logs"}}\n',
            fixed='{"train_batch_size": 1, "tensorboard": {"output_path": "logs", "enabled": true}}\n',
            accepted=None,  # takes the package tensorboard
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 128, «"loss_scale_window"»: 500}, '
            '"zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 128}, '
            '"zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "comms_logger": {"enabled": true, «"prof_ops"»: ["all_reduce"]}}\n',
            fixed='{"train_batch_size": 1, "comms_logger": {"enabled": true}}\n',
        ),
        Example('{"train_batch_size": 1, "fp16": {"enabled": false, "loss_scale_window": 500}}\n'),
        Example('{"train_batch_size": 1, "fp16": {"loss_scale_window": 1000}}\n'),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {}, "fp16": {"enabled": "auto", "loss_scale_window": 500}}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key without effect, and one for each section whose switch was forgotten."""
    told: set[str] = set()
    for entry in context.entries:
        key = entry.key
        if key is None or entry.node is None or not _speaks(context, entry, key):
            continue
        unmet = next((path for path, values in key.effective_when.items() if not _holds(context, path, values)), None)
        if unmet is None:
            continue
        switch = paths.name(unmet) in _SWITCHES and key.path.startswith(f"{paths.parent(unmet)}.")
        if switch or _is_switched_off(context, key, unmet):
            if unmet not in told and not _is_given(context, unmet):
                told.add(unmet)
                yield _forgotten(context, entry, unmet)
            continue
        yield context.finding(
            entry,
            say(
                "does nothing: {unmet} is {value} here, and it counts only with {effective_when}",
                unmet=shown(unmet),
                value=_text(context.value(unmet)),
                effective_when=say(" or ").join(f"`{json_text(value)}`" for value in key.effective_when[unmet]),
            ),
            part="key",
            fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)],
            tags=[Tag.UNNECESSARY],
        )


def _speaks(context: Context, entry: Entry, key: Key) -> bool:
    """Return whether the key is one to judge, and says something; what ZeRO makes inert is told elsewhere."""
    if key.status not in _HERE or key.dead or not key.effective_when or key.path in _TOLD_ELSEWHERE:
        return False
    if entry.path[0] == _ZERO or (entry.path[0] in {"bf16", "bfloat16"} and entry.path[0] != bf16_section(context)):
        return False
    value = entry.node.value() if entry.node is not None else None
    if value in (key.default, "auto") and not (isinstance(value, bool) and not isinstance(key.default, bool)):
        return False
    return not any(_is_zero(path) and not _holds(context, path, values) for path, values in key.effective_when.items())


def _holds(context: Context, path: str, values: Sequence[object]) -> bool:
    """Return whether a condition holds, or may hold."""
    key = context.known.key(path)
    value = context.value(path)
    if key is None or key.status not in _HERE or value is UNKNOWN or "[]" in path or "*" in path:
        return True
    if path == f"{_ZERO}.stage":
        return context.stage is None or context.stage in values
    if path == f"{_ZERO}.offload_optimizer.device":
        return context.device("offload_optimizer") in {None, *values}
    if all(isinstance(wanted, bool) for wanted in values):
        on = bf16_is_on(context, paths.name(path)) if path.startswith("bf16.") else context.is_on(path)
        return on is None or on in values
    number = context.number(path)
    if number is not None:
        return number in values
    return value in values


def _is_zero(path: str) -> bool:
    return path.startswith(f"{_ZERO}.")


def _is_given(context: Context, path: str) -> bool:
    section, _, name = path.partition(".")
    spelled = (bf16_section(context), name) if section == "bf16" else None
    return context.document.node_at(spelled) is not None if spelled else context.raw(path) is not MISSING


def _is_switched_off(context: Context, key: Key, unmet: str) -> bool:
    """Return whether the condition is a switch of the same section that the file turns off by name."""
    return bool(
        paths.parent(unmet) == key.parent != "" and context.raw(unmet) is False and key.effective_when[unmet] == [True]
    )


def _forgotten(context: Context, entry: Entry, switch: str) -> Finding:
    depth = paths.parent(switch).count(".") + 1
    section = entry.path[:depth]
    name = paths.name(switch)
    return context.finding(
        section,
        say("nothing in {section} acts: `{name}` is left out, which means off", section=shown(section), name=name),
        part="key",
        severity=Severity.WARNING,
        fixes=[context.insert((*section, name), True, say("Add `{name}`: true", name=name), safe=False)],
    )


def _text(value: object) -> str:
    return say("absent") if value in (MISSING, None) else f"`{json_text(value)}`"
