"""Known bugs that one release has and the other has not, as far as the config meets them."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge.bugs import Bug
from dsmigrate.languages import say
from dsmigrate.rules.known_bugs import met, met_through

_EFFECTS = {"slow": Effect.SPEED, "memory": Effect.MEMORY, "risky": Effect.NUMERICS, "misread": Effect.NUMERICS}
_STOPS = frozenset({"rejected", "crash"})
_FLAT = '{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 0.02}}}'
_SERIAL = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}'


@explanation(
    "DF131",
    "known-bugs",
    summary="Known bugs that the config meets in one of the two DeepSpeed releases.",
    why=(
        "An upgrade cures bugs and brings others. `docs/known-bugs.md` lists those that a config decides about;"
        " `dsmigrate explain` with the name of one tells more."
    ),
    source=("schemas/deepspeed/known-bugs.toml",),
    examples=(
        Example(
            _FLAT,
            _FLAT,
            "DeepSpeed 0.19.7 no longer has a bug of 0.19.6 that this config meets: without ZeRO, Muon takes the raw",
            effects=(Effect.NUMERICS, Effect.VALIDITY),
            severity=Severity.INFO,
            old_version="0.19.6",
            new_version="0.19.7",
        ),
        Example(
            _SERIAL,
            _SERIAL,
            "DeepSpeed 0.17.5 has a bug that this config meets and 0.17.1 had not: `overlap_comm` waits for each",
            effects=(Effect.SPEED, Effect.VALIDITY),
            severity=Severity.WARNING,
            old_version="0.17.1",
            new_version="0.17.5",
        ),
        Example(_FLAT, _FLAT, "", old_version="0.19.4", new_version="0.19.5"),
    ),
    last=True,
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each bug that is met on one side, between two releases of DeepSpeed or its consumer."""
    if _releases(pair.old) == _releases(pair.new):
        return
    old, new = _met(pair.old), _met(pair.new)
    for bug in (bug for bug in new if bug not in old):
        stops = bug.severity == "error" and bug.effect in _STOPS
        who, before, now = _named(pair, bug)
        yield pair.says(
            *_paths(pair.new, bug),
            effects=_effects(bug),
            severity=Severity.BREAKING if stops else Severity.INFO if bug.severity == "info" else Severity.WARNING,
            message=say(
                "{who} {now} has a bug that this config meets and {before} had not: {what} (`{bug}`)",
                who=who,
                now=now,
                before=before,
                what=bug.said,
                bug=bug.id,
            ),
            advice=f"{bug.cure[:1].upper()}{bug.cure[1:]}",
            brief=say("known bug `{bug}`", bug=bug.id) if stops else "",
            tally="" if stops else say("Known bugs brought: {count}"),
        )
    for bug in (bug for bug in old if bug not in new):
        who, before, now = _named(pair, bug)
        yield pair.says(
            *_paths(pair.old, bug),
            effects=_effects(bug),
            severity=Severity.INFO,
            message=say(
                "{who} {now} no longer has a bug of {before} that this config meets: {what} (`{bug}`)",
                who=who,
                now=now,
                before=before,
                what=bug.said,
                bug=bug.id,
            ),
            tally=say("Known bugs cured: {count}"),
        )


def _releases(side: Side) -> tuple[str, str | None]:
    return side.known.version, side.context.consumer_release


def _met(side: Side) -> tuple[Bug, ...]:
    """Return the bugs of DeepSpeed, and of what hands the config on, that a side meets."""
    context, release = side.context, side.context.consumer_release
    through = met_through(context, context.consumer.value, release) if release is not None else ()
    return (*met(context), *through)


def _named(pair: Pair, bug: Bug) -> tuple[str, str, str]:
    """Return who has a bug, and its releases on both sides."""
    if bug.package:
        before, now = (side.context.consumer_release or "" for side in (pair.old, pair.new))
        return pair.new.context.consumer.title, before, now
    return "DeepSpeed", pair.old.known.version, pair.new.known.version


def _paths(side: Side, bug: Bug) -> tuple[str, ...]:
    return tuple(key for key in bug.keys if key in side.given) or bug.keys[:1]


def _effects(bug: Bug) -> tuple[Effect, ...]:
    """Return what a bug touches; whether training is as it should be is a question of validity in any case."""
    found = _EFFECTS.get(bug.effect)
    return (Effect.VALIDITY,) if found is None else (found, Effect.VALIDITY)
