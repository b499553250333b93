"""DS948: compression settings one level too high."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SWITCH = "compression_training.shared_parameters.enabled"
_EIGENVALUE = "quantize_training.eigenvalue.enabled"
_HARMLESS_SINCE = "0.19.3"
"""Before it the name of the section that the switch leads to was not defined."""


@rule(
    "DS948",
    "compression-level",
    summary="`shared_parameters` directly in `compression_training`, switched on.",
    why="The settings of a technique belong into its own table. One level higher they were read to decide about "
    "eigenvalues alone: from 0.9.0 to 0.19.2 a true `enabled` there was a `NameError`, later ones refused it together "
    f"with `{_EIGENVALUE}`.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/compression/config.py:get_quantize_enabled",
        "deepspeed/runtime/config.py:get_eigenvalue_config",
    ),
    until="0.19.7",
    keys=(_SWITCH, _EIGENVALUE),
    examples=(
        Example(
            '{"train_batch_size": 8, "compression_training": {"shared_parameters": {"enabled": «true»}}}',
            fixed='{"train_batch_size": 8, "compression_training": {"shared_parameters": {}}}',
            version="0.14.5",
            accepted=None,  # an older release
        ),
        Example(
            '{"train_batch_size": 8, "compression_training": {"shared_parameters": {"enabled": «true»}}, '
            '"quantize_training": {"eigenvalue": {"enabled": true}}}',
            version="0.19.6",
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "compression_training": {"shared_parameters": {"enabled": true}}}',
            version="0.19.6",
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the switch where this release fails on it."""
    entry = context.entry(_SWITCH)
    if entry is None or not context.is_on(_SWITCH):
        return
    always = order(context.known.version) < order(_HARMLESS_SINCE)
    if always or context.is_on(_EIGENVALUE):
        says = say("a NameError") if always else say("refused together with `{eigenvalue}`", eigenvalue=_EIGENVALUE)
        yield context.finding(
            entry,
            say(
                "{path} is {says}; the settings belong into a technique, such as `weight_quantization`",
                path=shown(entry.path),
                says=says,
            ),
            fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=False)] if always else [],
        )
