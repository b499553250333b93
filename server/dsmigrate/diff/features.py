"""A feature with a switch of its own: what is said when it comes, goes, or runs with other numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.phrases import listed
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING, paths
from dsmigrate.languages import say

_MOST = 3


@dataclass(frozen=True, slots=True)
class Feature:
    """A section whose keys act while ``switch`` is on, or, with ``switch`` "", while the section is there.

    ``begins`` and ``ends`` are sentences without full stop; ``runs`` begins the sentence about other settings, which
    lists them, and ``brief`` is the feature in the verdict. ``advice`` goes with ``begins``.
    """

    section: str
    switch: str
    begins: str
    ends: str
    runs: str
    brief: str
    advice: str = ""


def told(
    pair: Pair, feature: Feature, *, effects: tuple[Effect, ...], severity: Severity = Severity.WARNING
) -> Iterator[Explained]:
    """Yield one message about a feature: that it begins or ends, or how its settings change while it is on."""
    found = [*pair.live(feature.section), *filter(None, (pair.change(feature.section),))]
    if not found:
        return
    before, after = is_on(pair.old, feature), is_on(pair.new, feature)
    if before is None or after is None or any(_is_refused(side, found) for side in (pair.old, pair.new)):
        return
    every = [change.path for change in found]
    if before is not after:
        about = feature.switch if feature.switch in every else feature.section
        yield pair.says(
            *dict.fromkeys((about, *every)) if about in every else every,
            effects=effects,
            severity=severity,
            message=feature.begins if after else feature.ends,
            advice=feature.advice if after else "",
            brief=feature.brief if after else say("no {brief}", brief=say(feature.brief)),
        )
    elif after:
        yield from _retuned(pair, feature, found)


def _is_refused(side: Side, found: list[Change]) -> bool:
    return any(change.path in side.given and side.refuses(change.path) for change in found)


def is_on(side: Side, feature: Feature) -> bool | None:
    """Return whether a feature is on; None when that is unknown. What a release does not read is off."""
    if not side.reads(feature.switch or feature.section):
        return False
    if feature.switch:
        return side.is_on(feature.switch)
    given = side.context.raw(feature.section)
    return given is not MISSING and given is not None


def _retuned(pair: Pair, feature: Feature, found: list[Change]) -> Iterator[Explained]:
    touched = {effect for change in found for effect in effects_of(pair, change.path)} - {Effect.NONE}
    if touched == {Effect.VALIDITY}:
        return  # what the engine accepts is for the rules to say
    acting = tuple(effect for effect in Effect if effect in touched and effect is not Effect.VALIDITY)
    yield pair.says(
        *(change.path for change in found),
        effects=acting or (Effect.NONE,),
        severity=Severity.NONE if not acting else Severity.WARNING if Effect.NUMERICS in acting else Severity.INFO,
        message=say("{runs}: {settings}", runs=say(feature.runs), settings=settings(pair, found)),
        brief=say("{brief} with other settings", brief=say(feature.brief)) if acting else "",
    )


def settings(pair: Pair, found: list[Change]) -> str:
    """Return what other settings there are, with what each is: "`min_value` 128 → 256 (kept length at the start)"."""
    words = [_setting(pair, change) for change in found[:_MOST]]
    more = len(found) - _MOST
    return listed([*words, say("{more} more", more=more)] if more > 0 else words)


def _setting(pair: Pair, change: Change) -> str:
    key = pair.new.known.key(change.path) or pair.old.known.key(change.path)
    summary = key.summary.rstrip(".。") if key is not None else ""
    about = (
        say(" ({about})", about=f"{summary[:1].lower()}{summary[1:]}") if summary and not summary[1:2].isupper() else ""
    )
    old, new = (shown(value).strip("`") for value in (change.old_meant, change.new_meant))
    return f"`{paths.name(change.path)}` {old} → {new}{about}"
