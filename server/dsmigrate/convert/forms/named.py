"""A config that an argument of a call gives: a dictionary, a name of one, or the path of a file."""

from __future__ import annotations

from dataclasses import replace

from dsmigrate.convert import codes
from dsmigrate.convert.forms.accelerate import Load
from dsmigrate.convert.forms.literal import settings_of
from dsmigrate.convert.model import ConvertError, Form, Kind, Note, Place, Settings
from dsmigrate.convert.python_calls import Argument, Script
from dsmigrate.document import Path
from dsmigrate.editing.python import literals
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say


def config_of(script: Script, argument: Argument, load: Load, consumer: Consumer) -> Settings:
    """Return what the config says that an argument gives; raises ConvertError for what cannot be followed."""
    start = script.value_start(argument.place)
    found = next((one for one in literals(script.text) if one.start == start), None)
    if found is not None:
        return settings_of(found, script.text, Form.DICT, consumer)
    if isinstance(argument.value, str):
        settings = load(argument.value)
        if settings is not None:
            places: dict[Path, Place] = {(name,): argument.place for name in settings.config}
            notes = tuple(replace(note, place=argument.place) for note in settings.notes)
            return replace(settings, consumer=consumer, places=places, notes=notes, text=script.text)
        message = say("{name} names {path}, which is not there", name=argument.name, path=argument.value)
        note = Note(codes.NO_FILE, Kind.CHANGED, argument.name, message, argument.place)
        return Settings(Form.DICT, consumer, {}, text=script.text, is_whole=False).noting(note)
    message = say(
        "{name} is the expression {text}, which is no dictionary and no path to be read",
        name=argument.name,
        text=argument.text[:60],
    )
    raise ConvertError.at(message, script.text, argument.place.start)
