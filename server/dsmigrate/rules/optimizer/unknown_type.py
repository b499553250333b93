"""DS600: an optimizer type that neither DeepSpeed nor torch has."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import TypeFacts
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import folded, is_here, nearest_names, one_of, written_type

_OF_OTHERS = frozenset({"adan"})
"""Optimizers of other packages whose names look like a slip of one of ours."""
_ALSO_IN_TORCH = frozenset({"Muon"})
"""Types that torch may have where DeepSpeed does not yet."""


@rule(
    "DS600",
    "unknown-optimizer",
    summary="An optimizer type that neither DeepSpeed nor `torch.optim` has under that name.",
    why="DeepSpeed compares its own nine names in any case and looks everything else up in `torch.optim`, letter by "
    "letter: `SGD` works, `sgd` does not. Names of other packages and of `TrainingArguments.optim` (`adamw_torch`, "
    "`paged_adamw_8bit`) are unknown to it: their optimizers are built by the script. The engine stops with "
    "`AssertionError: ... is not a supported DeepSpeed Optimizer`; reading the config alone does not tell.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._is_supported_optimizer",
        "deepspeed/runtime/config.py:DEEPSPEED_OPTIMIZERS",
    ),
    keys=("optimizer.type",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"sgd"», "params": {"lr": 0.1}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"adamw_torch"», "params": {"weight_decay": 0}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"weight_decay": 0}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"Prodigy"», "params": {"lr": 1.0}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"Lion"», "params": {"lr": 1e-4}}}',
            version="0.10.3",
            accepted=None,  # a verdict of another release
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"Muon"», "params": {"lr": 1e-4}}}',
            version="0.16.9",
            accepted=None,  # up to the model, and to torch
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "ADAMW", "params": {"lr": 0.1}}}'),
        Example('{"train_batch_size": 8, "optimizer": {"type": "RMSprop", "params": {"lr": 0.1}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a type that the release cannot build."""
    written = written_type(context, "optimizer")
    facts = None if written is None else context.known.optimizer(written)
    if written is None or (facts is not None and is_here(facts, context)):
        return
    if facts is not None and written in _ALSO_IN_TORCH:
        yield context.finding(
            "optimizer.type",
            say(
                "DeepSpeed {known_version} has no `{written}` of its own, which came with {since}: it takes the one of "
                "`torch.optim`, which is there from torch 2.9 on and refuses parameters that are not matrices",
                known_version=context.known.version,
                written=written,
                since=facts.since,
            ),
            severity=Severity.WARNING,
        )
        return
    if facts is not None:
        if facts.until is None:
            yield context.finding(
                "optimizer.type",
                say(
                    "DeepSpeed {known_version} does not know `{written}`, which came with {since}: the engine "
                    "refuses to start",
                    known_version=context.known.version,
                    written=written,
                    since=facts.since,
                ),
            )
        return
    likely = [] if folded(written) in _OF_OTHERS else _likely(context.known.optimizers(), written)
    advice = (
        say("; did you mean {likely}?", likely=one_of(likely))
        if likely
        else say("; build it in the script and leave this section out")
    )
    if likely and folded(likely[0]) == folded(written):
        advice = say(": names of `torch.optim` are taken letter by letter, write {likely}", likely=one_of(likely[:1]))
    yield context.finding(
        "optimizer.type",
        say(
            "neither DeepSpeed nor `torch.optim` has an optimizer `{written}`: the engine refuses to start{advice}",
            written=written,
            advice=advice,
        ),
        fixes=[
            context.replace(
                "optimizer.type", name, say("Write `{name}`", name=name), safe=folded(name) == folded(written)
            )
            for name in likely
        ],
    )


def _likely(types: tuple[TypeFacts, ...], written: str) -> list[str]:
    return nearest_names(written, [facts.name for facts in types])
