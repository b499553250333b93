"""What becomes of "auto" in this file: who fills it and from what, or what applies in its place."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import Path
from dsmigrate.knowledge import MISSING, Auto, AutoEffect, Consumer, Key
from dsmigrate.knowledge.wording import auto_text, json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Fate:
    """What "auto" becomes: in a few words (``short``, "" when nothing good), and in a sentence."""

    auto: Auto
    short: str
    sentence: str

    @property
    def is_trouble(self) -> bool:
        """Whether a rule has something to say about it."""
        return not self.auto.works


def fate(context: Context, path: Path, key: Key | None) -> Fate | None:
    """Return what becomes of "auto" at a path; None where it reaches DeepSpeed at a place that nobody knows."""
    auto = context.known.auto(path, context.consumer)
    if auto is None:
        return None
    if auto.effect is AutoEffect.FILLED:
        return Fate(auto, auto.short, auto_text(auto, context.consumer))
    if auto.effect is AutoEffect.DEFAULT and key is not None:
        default = "" if key.default is MISSING else json_text(key.default)
        if default and len(default) <= _LONGEST:
            drops = say('DeepSpeed drops "auto", and the default {default} applies.', default=default)
            return Fate(auto, say("{default}, the default", default=default), drops)
    return Fate(auto, "", auto_text(auto, context.consumer))


def must_match(context: Context, path: Path) -> str:
    """Return the source that a value has to agree with for this consumer; "" when it may be anything."""
    if context.consumer is Consumer.DEEPSPEED:
        return ""
    auto = context.known.auto(path, context.consumer)
    return auto.source if auto is not None and auto.must_match else ""
