"""From a text, in whatever form, to settings; and from settings to the document that rules and the diff look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsmigrate.checking.evidence import UPWARD, consumer_for
from dsmigrate.convert import tree
from dsmigrate.convert.forms.deepspeed import read_deepspeed
from dsmigrate.convert.model import Config, ConvertError, Form, Place, Settings
from dsmigrate.convert.overlay import overlay
from dsmigrate.document import Document, DocumentError, parse, parse_bytes
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import MissingFileError
from dsmigrate.files.reading import read as read_file
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import Consumer


@dataclass(frozen=True, slots=True)
class Input:
    """A text to read: where files that it names are looked for, of several places the one on ``line`` (from 1)."""

    text: str
    folder: Path | None = None
    line: int | None = None
    consumer: Consumer | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)


def read(form: Form, given: Input) -> Settings:
    """Return what a text says in a form; raises ConvertError, with the place, for one that cannot be read."""
    text, folder, line = given.text, given.folder, given.line

    def load(name: str) -> Settings | None:
        return load_config(name, folder, text)

    if form is Form.ACCELERATE:
        from dsmigrate.convert.forms.accelerate import read_accelerate  # noqa: PLC0415 - each form is read alone

        return read_accelerate(text, load, dict(given.overrides))
    if form is Form.PLUGIN:
        from dsmigrate.convert.forms.plugin import read_plugin  # noqa: PLC0415

        return read_plugin(text, load, line)
    if form is Form.TRANSFORMERS:
        from dsmigrate.convert.forms.transformers import read_transformers  # noqa: PLC0415

        return read_transformers(text, load, line)
    if form is Form.DICT:
        from dsmigrate.convert.forms.literal import read_dict, the_one  # noqa: PLC0415

        document = the_one(text, line).document
        return read_dict(text, given.consumer or Consumer(consumer_for(document, folder).value), line)
    return read_deepspeed(text, given.consumer or Consumer(consumer_for(parse(text), folder).value))


def load_config(name: str, folder: Path | None, text: str = "") -> Settings | None:
    """Return the settings of the config file that a form names, from ``folder`` or one around it; None for no file.

    Raises ConvertError for a file that is there and cannot be read; ``text`` is that of the form, to point into.
    """
    for place in (Path(),) if folder is None else (folder, *resolved(folder).parents[:UPWARD]):
        try:
            return read_deepspeed(parse_bytes(read_file(place / name)).text, Consumer.ACCELERATE)
        except MissingFileError:
            continue
        except SourceError as error:
            raise ConvertError.at(f"{name}: {error.message}", text, max(text.find(name), 0)) from None
        except DocumentError as error:
            raise ConvertError.at(f"{name}: {error}", text, max(text.find(name), 0)) from None
        except ConvertError as error:
            said = f"{name}{error.where}: {error.message}"
            raise ConvertError.at(said, text, max(text.find(name), 0)) from None
    return None


def document_of(settings: Settings) -> Document:
    """Return the document of settings: DeepSpeed's keys, at their places in the text that they were read from."""
    return overlay(spelled_out(settings), whole_of(settings))


def spelled_out(settings: Settings) -> Settings:
    """Return settings in which an expression stands as its text."""
    config: Config = settings.config
    if settings.unknown:
        config = tree.copied(config)
        for path, text in settings.unknown.items():
            tree.put(config, path, text)
    return replace(settings, config=config)


def hidden(settings: Settings) -> tuple[tuple[int, int], ...]:
    """Return start and end of the values that are expressions of a script."""
    found = (settings.places.get(path) for path in settings.unknown)
    return tuple((place.start, place.end) for place in found if place is not None)


def whole_of(settings: Settings) -> Place:
    """Return the place for what has none of its own."""
    if settings.form is Form.ACCELERATE:
        from dsmigrate.convert.forms.accelerate import whole  # noqa: PLC0415

        return whole(settings)
    if settings.form is Form.PLUGIN:
        from dsmigrate.convert.forms.plugin import call_place  # noqa: PLC0415

        return call_place(settings)
    first = min((place.key_start for place in settings.places.values()), default=0)
    last = max((place.end for place in settings.places.values()), default=len(settings.text))
    return Place(first, min(first + 1, len(settings.text)), first, last)
