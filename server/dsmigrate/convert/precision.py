"""The half precision that a consumer switches on by its arguments, where the config has no section for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dsmigrate.convert import codes
from dsmigrate.convert.fills import Known, NotKnownError, value_of
from dsmigrate.convert.model import Config, Kind, Note, Settings
from dsmigrate.knowledge import Auto, Consumer, Knowledge
from dsmigrate.languages import say

SECTIONS = ("fp16", "bf16")


def section_of(name: str) -> Config:
    """Return the section that Accelerate makes, for itself and for the Trainer."""
    return {"enabled": True, "auto_cast": True} if name == "fp16" else {"enabled": True}


def with_precision(settings: Settings, known: Knowledge, target: Consumer) -> Settings:
    """Return the settings with the section that their consumer adds, for a target that another consumer reads.

    Where nothing tells what the consumer adds, a note says so, and the settings know that their precision is not known.
    """
    absent = _autos(settings, known, None)
    if not absent or _is_on(settings, known):
        return settings
    values = {name: _value(auto, settings) for name, auto in absent.items()}
    on = [name for name, value in values.items() if value]
    if not on and None in values.values():
        settings = replace(settings, precision_is_known=False)
        is_left = target is not Consumer.DEEPSPEED and bool(_autos(settings, known, "auto"))
        return settings if is_left or target is settings.consumer else settings.noting(_not_known(settings))
    if target is settings.consumer:
        return settings
    notes = [_added(name, absent[name], settings) for name in on]
    config = {**settings.config, **{name: section_of(name) for name in on}}
    return replace(settings, config=config).noting(*notes)


def _is_on(settings: Settings, known: Knowledge) -> bool:
    """Return whether a section that is there decides: it is switched on, or filled with true."""
    written = [_switch(settings, name) for name in SECTIONS]
    filled = _autos(settings, known, "auto").values()
    return any(str(one).lower() == "true" for one in written) or any(_value(auto, settings) for auto in filled)


def _switch(settings: Settings, name: str) -> object:
    """Return what stands at the switch of a section: None without the section, False where it leaves the switch out."""
    section = settings.config.get(name, {"enabled": None})
    return section.get("enabled", False) if isinstance(section, dict) else False


def _autos(settings: Settings, known: Knowledge, written: str | None) -> dict[str, Auto]:
    """Return what fills the switches at which ``written`` stands, of the sections that the consumer adds."""
    found: dict[str, Auto] = {}
    for name in SECTIONS:
        auto = known.auto((name, "enabled"), settings.consumer)
        if auto is not None and auto.adds_section and _switch(settings, name) == written:
            found[name] = auto
    return found


def _value(auto: Auto, settings: Settings) -> bool | None:
    """Return whether the consumer switches a section on, None where nothing tells."""
    try:
        return bool(value_of(auto, Known({**_around(settings), **settings.arguments}, settings.defaults_hold)))
    except NotKnownError:
        return None


def _around(settings: Settings) -> Mapping[str, Any]:
    """Return the mixed precision of a launcher's file, which a script may override."""
    kind = settings.around.get("mixed_precision")
    return {"mixed_precision": kind.lower()} if isinstance(kind, str) else {}


def _not_known(settings: Settings) -> Note:
    message = say(
        "{consumer} switches fp16 or bf16 on where its arguments say so, which nothing tells here: give "
        "--set mixed_precision=bf16, fp16 or no, or --arguments",
        consumer=settings.consumer.title,
    )
    return Note(codes.PRECISION_NOT_KNOWN, Kind.CHANGED, "mixed_precision", message)


def _added(name: str, auto: Auto, settings: Settings) -> Note:
    message = say(
        "{section} is added, as {consumer} does: from {source}",
        section=name,
        consumer=settings.consumer.title,
        source=auto.source,
    )
    return Note(codes.RESOLVED, Kind.TOLD, name, message)
