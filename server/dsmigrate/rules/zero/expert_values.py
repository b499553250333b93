"""DS475: values that AutoEP refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsmigrate.knowledge import AutoEffect, Key
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import is_effective
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import alternatives

_SECTION = "expert_parallel"
_CHILDREN = frozenset(
    {"expert_w1", "expert_w2", "expert_w3", "num_experts_attr", "top_k_attr", "router_pattern", "expert_pattern"}
    | {"shared_experts_pattern", "shared_experts_gate_pattern"}
)
"""Keys that name one attribute."""
_SWITCHES = frozenset({"async_split_plan", "validate_folding_routing", "has_shared_experts"})
"""Switches that take nothing but booleans."""


@rule(
    "DS475",
    "expert-parallel-value",
    summary="A value in `expert_parallel` that the engine refuses.",
    why="The section is read without a check. With `enabled` the engine checks it key by key when it starts, "
    "strictly: a size "
    "in quotes, `1.0` for 1, another case or a dot in an attribute name is a ValueError.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/module_inject/auto_ep_config.py:validate_autoep_config",
        "deepspeed/module_inject/auto_ep_folding.py:build_folding_spec",
    ),
    since="0.19.2",
    keys=(_SECTION, f"{_SECTION}.autoep_size", f"{_SECTION}.comm_backend", f"{_SECTION}.preset_model"),
    examples=(
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "comm_backend": «"nccl"»}}\n', accepted=False
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "autoep_size": «"2"»}}\n', accepted=False
        ),
        Example('{"train_batch_size": 1, "expert_parallel": {"enabled": true, "comm_num_sm": «0»}}\n', accepted=False),
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "router_pattern": «"mlp.gate"»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "async_split_plan": «"yes"»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "moe_layer_pattern": «"("»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 6, "expert_parallel": {"enabled": true, "autoep_size": «4»}}\n',
            facts=Facts(world_size=6),
            accepted=None,  # takes six processes
        ),
        Example('{"train_batch_size": 1, "expert_parallel": {"enabled": false, "comm_backend": "nccl"}}\n'),
        Example(
            '{"train_batch_size": 1, "expert_parallel": {"enabled": true, "score_apply": "auto", "expert_w3": null}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at each value, when the section is on."""
    if not context.is_on(f"{_SECTION}.enabled"):
        return
    for entry in context.entries:
        key = entry.key
        if key is None or key.parent != _SECTION or entry.node is None:
            continue
        value = entry.node.value()
        if value == "auto" and not _is_checked_all_the_same(context, entry, key):
            continue  # told with every other "auto"
        told = _wrong(key, value)
        if told is not None:
            yield context.finding(entry, told)
    size, world = context.value(f"{_SECTION}.autoep_size"), context.facts.world_size
    if isinstance(size, int) and size > 1 and world is not None and world % size:
        yield context.finding(
            f"{_SECTION}.autoep_size", say("{world} ranks cannot be cut into groups of {size}", world=world, size=size)
        )


def _is_checked_all_the_same(context: Context, entry: Entry, key: Key) -> bool:
    """Return whether "auto" is a value, or refused at a key that does nothing with the others as they are."""
    effect = key.auto(context.consumer).effect
    inert = effect is AutoEffect.ENGINE_ERROR and is_effective(context, key, entry.path) is False
    return effect is AutoEffect.VALUE or inert


def _wrong(key: Key, value: object) -> str | None:
    shown = json_text(value)
    if value is None:
        checked = bool(key.enum) or key.minimum is not None
        needed = key.name == "routed_scaling_factor" or (checked and "null" not in key.type)
        return say("null is refused; leave `{name}` out", name=key.name) if needed else None
    if key.enum and key.name != "expert_tensor_parallel_size":
        return (
            None
            if value in key.enum
            else say("{shown} is not one of {alternatives}", shown=shown, alternatives=alternatives(key.enum))
        )
    if key.minimum is not None:
        least = say("the least value is {minimum}", minimum=json_text(int(key.minimum)))
        compared = isinstance(value, float) and "null" in key.type  # with the limit alone
        if not compared and not isinstance(value, int):
            return say("{shown} is no whole number; {least}", shown=shown, least=least)
        return (
            say("{shown} is refused; {least}", shown=shown, least=least)
            if isinstance(value, (int, float)) and value < key.minimum
            else None
        )
    if key.name == "expert_tensor_parallel_size":
        return (
            None
            if isinstance(value, int) and value == 1
            else say("{shown} is refused: only 1 is supported", shown=shown)
        )
    if key.name in _SWITCHES:
        return None if isinstance(value, bool) else say("{shown} is no boolean", shown=shown)
    if key.name in _CHILDREN:
        fits = isinstance(value, str) and value and "." not in value
        return None if fits else say("{shown} is not the name of an attribute: text without dots", shown=shown)
    if key.name == "routed_scaling_factor":
        return (
            None
            if isinstance(value, (int, float)) or value == "auto"
            else say('{shown} is neither a number nor "auto"', shown=shown)
        )
    if key.name == "moe_layer_pattern" and not (isinstance(value, str) and _compiles(value)):
        return say("{shown} is no regular expression", shown=shown)
    return None


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
