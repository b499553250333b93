"""DS116: a section without a key that DeepSpeed looks up in it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.knowledge import MISSING, Key
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import is_shadowed


@rule(
    "DS116",
    "required-key-missing",
    summary="A section lacks a key that DeepSpeed takes out of it, or asserts, while it reads the config.",
    why=(
        'Some sections of earlier releases could be left out as a whole, but not without this key: `"amp": {}` ends in'
        " `KeyError: 'enabled'`, and a technique of `compression_training` without `different_groups` in another, even"
        " when it is disabled."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/config.py:get_amp_params",
        "deepspeed/compression/config.py:get_weight_quantization_different_groups",
        "deepspeed/elasticity/config.py:ElasticityConfig",
    ),
    keys=("amp.enabled", "progressive_layer_drop.enabled", "elasticity.micro_batch_sizes"),
    examples=(
        Example(
            '{"train_batch_size": 8, «"amp"»: {}}',
            fixed='{"train_batch_size": 8, "amp": {"enabled": false}}',
            version="0.19.6",
            accepted=None,  # the judge is the newest release
        ),
        Example(
            '{"train_batch_size": 8, "compression_training": {«"head_pruning"»: {"shared_parameters": {}}}}',
            fixed='{"train_batch_size": 8, "compression_training": {"head_pruning": {"shared_parameters": {}, '
            '"different_groups": {}}}}',
            version="0.14.5",
            accepted=None,  # the same
        ),
        Example(
            '{"train_batch_size": 8, "compression_training": {"row_pruning": {"different_groups": '
            '{"mlp": {«"params"»: {}}}}}}',
            version="0.9.5",
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": false}, "train_batch_size": 8, "progressive_layer_drop": {"enabled": false}}',
            version="0.18.9",
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key that is missing."""
    for entry in context.entries:
        node, section = entry.node, entry.key
        if section is None or not isinstance(node, Object) or is_shadowed(context, entry.path):
            continue
        for key in context.known.required(section.path):
            if node.get(key.name) is None and context.holds(key.required_when or {}):
                yield context.finding(
                    entry,
                    say("DeepSpeed cannot read {path} without `{name}`", path=shown(entry.path), name=key.name),
                    part="key",
                    fixes=[_fix(context, entry, key)],
                )


def _fix(context: Context, entry: Entry, key: Key) -> Fix | None:
    """Return the fix that adds the key as if it were not missed: with its default, or empty."""
    empty: object = {} if key.type == ("object",) else MISSING
    value = key.default if key.default is not MISSING else empty
    if value is MISSING or key.required_when:
        return None
    return context.insert((*entry.path, key.name), value, say("Add `{name}`", name=key.name), safe=False)
