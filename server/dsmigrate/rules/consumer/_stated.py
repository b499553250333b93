"""What launch lines, files of arguments and calls say beside the file, where a key of the file says it too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.elsewhere import arguments
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context


@dataclass(frozen=True, slots=True)
class Stated:
    """An argument of the Trainer: where it is given, or could be, its name, and its value as the Trainer reads it.

    ``words`` are those of a script with Accelerate.
    """

    place: str
    name: str
    value: object
    is_default: bool = False
    words: str = ""

    @property
    def said(self) -> str:
        """The argument with its place: ``--learning_rate 5e-05`` (run.sh:3)."""
        if self.words and self.is_default:
            return say("`{words}`, its default ({place})", words=self.words, place=self.place)
        if self.words:
            return say("`{words}` ({place})", words=self.words, place=self.place)
        value = json_text(self.value).strip('"')
        if self.is_default:
            return say("`{name}` {value}, its default ({place})", name=self.name, value=value, place=self.place)
        return say("`--{name} {value}` ({place})", name=self.name, value=value, place=self.place)


def stated(context: Context, path: str) -> Iterator[Stated]:
    """Yield what arguments beside the file say of a key; nothing for values that nobody knows before the run."""
    auto = context.known.auto(path, Consumer.TRANSFORMERS)
    for given in context.facts.arguments:
        for name in arguments().get(path, ()):
            found = given.given(name)
            if found is not None:
                value = _read(found.text, path)
                if value is not None and not (name == "warmup_steps" and value < 1):  # the ratio counts then
                    yield Stated(found.place, name, value, is_default=name not in given.values)
            elif given.whole and auto is not None and auto.usual is not None and name != "warmup_steps":
                yield Stated(given.place, name, auto.usual, is_default=True)


def scripted(context: Context, key: str) -> Iterator[Stated]:
    """Yield what scripts with Accelerate say of a key of the config, or of ``mixed_precision``."""
    for script in context.facts.accelerated:
        said = script.said.get(key)
        if said is not None:
            yield Stated(said.place, key, said.value, said.is_default, said.words)


def _read(text: str | None, path: str) -> bool | int | float | None:
    """Return a value as the parser of TrainingArguments reads it; None for one that is not known."""
    if text is None:
        return None
    if path.endswith(".enabled"):
        return {"": True, "true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(
            text.lower()
        )
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None
