"""DS610: an optimizer section that names no type."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import section


@rule(
    "DS610",
    "optimizer-without-type",
    summary="An optimizer section without a type, which builds no optimizer.",
    why="Without `type` the section is silently skipped, `params` included. Unless the script passes an "
    "optimizer of its own, ZeRO stages 1 and 2 then stop with `zero stage 1 requires an optimizer`, and stages 0 "
    "and 3 at the first `backward`.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/config.py:get_optimizer_name",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_zero_optimizer",
    ),
    keys=("optimizer", "optimizer.type"),
    examples=(
        Example('{"train_batch_size": 8, «"optimizer"»: {"params": {"lr": 1e-4}}}'),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, «"optimizer"»: {"type": null, "params": {}}}',
        ),
        Example('{"train_batch_size": 8, "optimizer": {"typ": "AdamW", "params": {}}}'),  # an unknown key
        Example('{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a section without type; one whose type is misspelt is told as an unknown key."""
    entry = section(context, "optimizer")
    if entry is None or context.raw("optimizer.type") not in (MISSING, None):
        return
    if any(
        "optimizer.type" in context.known.nearest(inner.name, "optimizer")
        for inner in context.entries
        if inner.path[:1] == ("optimizer",) and len(inner.path) == 2 and inner.key is None
    ):
        return
    yield context.finding(
        entry,
        say(
            "the section names no `type`, so DeepSpeed builds no optimizer and ignores `params`; add a type "
            'such as "AdamW", or remove the section when the script builds the optimizer'
        ),
        part="key",
    )
