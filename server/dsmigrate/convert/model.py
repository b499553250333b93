"""What is converted: a DeepSpeed config, what surrounds it, where it is written, and what is to be said about it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dsmigrate.document import Path
from dsmigrate.document.positions import LineIndex
from dsmigrate.knowledge import Consumer

Config = dict[str, Any]
"""A DeepSpeed config as plain data; "auto" stands for itself."""


class Form(enum.Enum):
    """A way to write the settings down."""

    DEEPSPEED = "deepspeed"
    """``ds_config.json``."""
    ACCELERATE = "accelerate"
    """The YAML file of ``accelerate launch``; FSDP's is read, too."""
    PLUGIN = "plugin"
    """``DeepSpeedPlugin(...)`` in a script."""
    DICT = "dict"
    """A dictionary in a script."""
    TRANSFORMERS = "transformers"
    """``TrainingArguments(...)`` in a script, with the config that it names."""

    @property
    def consumer(self) -> Consumer:
        """Who hands a config in this form to DeepSpeed, unless somebody says otherwise."""
        return _CONSUMERS[self]

    @property
    def is_script(self) -> bool:
        """Whether it stands in a Python file."""
        return self in {Form.PLUGIN, Form.DICT, Form.TRANSFORMERS}


_CONSUMERS = {
    Form.DEEPSPEED: Consumer.DEEPSPEED,
    Form.ACCELERATE: Consumer.ACCELERATE,
    Form.PLUGIN: Consumer.ACCELERATE,
    Form.DICT: Consumer.DEEPSPEED,
    Form.TRANSFORMERS: Consumer.TRANSFORMERS,
}


class Kind(enum.Enum):
    """What a note says of a key."""

    LOST = "lost"
    """The target has no place for it."""
    CHANGED = "changed"
    """It means something else there, or the source does not mean what it says."""
    TOLD = "told"
    """It is carried; there is something to know."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key is written: start and end of the key and of the value, in code points of the source."""

    key_start: int
    key_end: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Note:
    """What is to be said about one key; ``place`` is where the source has it.

    ``meant`` is what was probably meant by the key, with ``is_value`` by the value; "" where nothing suggests itself.
    """

    code: str
    kind: Kind
    key: str
    message: str
    place: Place | None = None
    meant: str = ""
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What one file says, in the words of a DeepSpeed config.

    Attributes:
        form: the form it was read from.
        consumer: who hands it to DeepSpeed.
        config: the config that the consumer starts from.
        around: what stands beside the config, by the names of Accelerate's YAML: ``num_processes``.
        arguments: what is known of the values that fill "auto", by the names of ``TrainingArguments``.
        defaults_hold: whether arguments that are not there have their defaults, as all that are given can be seen.
        places: where a path of the config is written.
        unknown: the paths whose value is an expression of a script, with its text.
        notes: what reading brought up.
        text: the text of the source.
        is_whole: False where keys may be there that nobody sees.
        precision_is_known: False where the consumer may add half precision, and nothing tells whether it does.
    """

    form: Form
    consumer: Consumer
    config: Config
    around: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    defaults_hold: bool = False
    places: Mapping[Path, Place] = field(default_factory=dict)
    unknown: Mapping[Path, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    text: str = ""
    is_whole: bool = True
    precision_is_known: bool = True

    def noting(self, *notes: Note) -> Settings:
        """Return the settings with more notes."""
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True, slots=True)
class Target:
    """How a target is written: into the text ``there``, at a ``line`` (from 1) of a script that has several places.

    ``carrying`` is how Accelerate gets a config: "fields", "whole", "file", or "auto"; ``name`` is that file.
    """

    there: str | None = None
    line: int | None = None
    carrying: str = "auto"
    name: str = "ds_config.json"


@dataclass(frozen=True, slots=True)
class Written:
    """A target: its text, what is printed beside it (arguments for the Trainer), and what was not carried over.

    ``names_file`` is whether it names a config file in place of what that says.
    """

    text: str
    notes: tuple[Note, ...] = ()
    beside: str = ""
    names_file: bool = False


class ConvertError(ValueError):
    """Input that cannot be converted; ``line`` and ``column`` are one-based, 0 where there is no place to point at."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    @classmethod
    def at(cls, message: str, text: str, offset: int) -> ConvertError:
        """Return the error for an offset of ``text`` in code points."""
        lines = LineIndex(text)
        line = lines.line_of(min(offset, len(text)))
        return cls(message, line + 1, offset - lines.starts[line] + 1)

    @property
    def where(self) -> str:
        """``:3:5``, to stand behind the name of the file; "" where there is no place."""
        return f":{self.line}:{self.column}" if self.line else ""
