"""Who reads a config, and what becomes of ``"auto"`` there."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dsmigrate.languages import mark, say


class Consumer(enum.Enum):
    """The program that hands a config to DeepSpeed."""

    DEEPSPEED = "deepspeed"
    TRANSFORMERS = "transformers"
    ACCELERATE = "accelerate"

    @property
    def title(self) -> str:
        """The name a reader knows it by."""
        return say(_TITLES[self])

    @property
    def reads_strict_json(self) -> bool:
        """Whether it parses the file with Python's ``json``, which knows no comments and sees no duplicate keys."""
        return self is not Consumer.DEEPSPEED


_TITLES = {
    Consumer.DEEPSPEED: mark("plain DeepSpeed"),
    Consumer.TRANSFORMERS: mark("Transformers Trainer"),
    Consumer.ACCELERATE: "Accelerate",
}


class AutoEffect(enum.Enum):
    """What happens to a key whose value is the text "auto"."""

    FILLED = "filled"
    """The consumer puts a value in its place."""
    DEFAULT = "default"
    """DeepSpeed drops the key and uses its default."""
    TEXT = "string"
    """DeepSpeed keeps the text, which does nothing useful and counts as true."""
    CONFIG_ERROR = "config-error"
    """DeepSpeed fails while it reads the config."""
    ENGINE_ERROR = "engine-error"
    """DeepSpeed fails where it uses the value: in the engine, or in what a script or launcher asks of it."""
    VALUE = "value"
    """"auto" is a value of this key, with a meaning of its own."""
    REFUSED = "refused"
    """The consumer stops with an error, which names the key unless the consumer needs the value itself before."""


@dataclass(frozen=True, slots=True)
class Auto:
    """The fate of ``"auto"`` at one key; ``source`` says what a filled value is taken from, else ""."""

    effect: AutoEffect
    source: str = ""
    unless: str = ""
    """The path of a key whose presence keeps the consumer from filling this one: it then stops; "" for none."""
    must_match: bool = False
    """Whether the consumer stops when the config holds another value than the source."""
    fallback: str | int | None = None
    """The value that is filled in when nothing names one; None where there is always a source."""
    usual: object = None
    """The value that is filled in when every argument of the consumer has its default; None where more is needed."""
    overwrites: bool = False
    """Whether the consumer puts its value in the place of any other as well, and there when the key is absent."""
    adds_section: bool = False
    """Whether the consumer adds the section with this key, where the whole section is absent."""
    english: str = ""
    """``source`` as the facts have it, whatever the language: what code works a value out by."""
    short: str = ""
    """``source`` in a few words."""

    @property
    def works(self) -> bool:
        """Whether "auto" gives what the person who wrote it expects."""
        return self.effect in {AutoEffect.FILLED, AutoEffect.VALUE}
