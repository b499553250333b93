"""One key of the config, as one release knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsmigrate.knowledge import paths
from dsmigrate.knowledge.consumer import Auto, AutoEffect, Consumer
from dsmigrate.knowledge.spans import MISSING, Event, Record, Status, events, facts_at, is_gone
from dsmigrate.languages import say

Conditions = Mapping[str, Sequence[object]]
"""Paths with the values of which each must have one."""


class Key:
    """A key at one release: facts of that release, and the documentation, which is written for the newest one.

    Types are the JSON names: boolean, integer, number, string, array, object, null.

    Attributes:
        path: the path under which it is documented.
        name: the last name of the path.
        parent: the path of the section that holds it; "" at the top.
        version: the release.
        status: what the release does with it.
        type: the JSON types it means to take; empty when any will do.
        is_section: whether its value is an object with keys that are known one by one.
        alias_of: the path that this one is another name of: ``bf16`` for ``bfloat16``.
        is_checked: whether DeepSpeed checks the value (pydantic); a plain read takes a value of any type.
        dead: why it has no effect in the newest release, although it is accepted; "" for a living key.
    """

    __slots__ = (
        "_auto",
        "_facts",
        "_record",
        "alias_of",
        "dead",
        "is_checked",
        "is_section",
        "name",
        "parent",
        "path",
        "status",
        "type",
        "version",
    )

    def __init__(self, path: str, version: str, record: Record, *, status: Status, auto: Mapping[str, Record]) -> None:
        """Wrap the record of ``path``; made by ``Knowledge`` alone."""
        self.path = path
        self.version = version
        self.status = status
        self._record = record
        self._facts = facts_at(record, version)
        self._auto = auto
        self.name = paths.name(path)
        self.parent = paths.parent(path)
        self.type: tuple[str, ...] = tuple(self._facts.get("type", ()))
        self.is_section = bool(record.get("section"))
        self.alias_of: str | None = record.get("alias_of")
        self.is_checked: bool = self._facts.get("validated") == "pydantic"
        self.dead = self._text("dead")

    def __repr__(self) -> str:
        return f"Key({self.path!r}, {self.version!r}, {self.status.value!r})"

    @property
    def items(self) -> tuple[str, ...]:
        """The JSON types of the elements of a list."""
        return tuple(self._facts.get("items", ()))

    @property
    def default(self) -> object:
        """What an absent key means, or ``MISSING``."""
        return self._facts.get("default", MISSING)

    @property
    def enum(self) -> tuple[object, ...]:
        """The closed list of its values; empty when there is none."""
        return tuple(self._facts.get("enum", ()))

    @property
    def item_enum(self) -> tuple[object, ...]:
        """The closed list of the elements of a list; empty when there is none."""
        return tuple(self._facts.get("item_enum", ()))

    @property
    def ignores_case(self) -> bool:
        """Whether the values of ``enum`` may be spelled in any case."""
        return bool(self._record.get("ignore_case"))

    @property
    def minimum(self) -> float | None:
        """The least value that is accepted."""
        return self._facts.get("minimum")

    @property
    def exclusive_minimum(self) -> float | None:
        """The value that an accepted one is greater than."""
        return self._facts.get("exclusive_minimum")

    @property
    def maximum(self) -> float | None:
        """The greatest value that is accepted."""
        return self._facts.get("maximum")

    @property
    def exclusive_maximum(self) -> float | None:
        """The value that an accepted one is less than."""
        return self._facts.get("exclusive_maximum")

    @property
    def field(self) -> str | None:
        """A second spelling that is accepted: ``prefetch_bucket_size`` for ``stage3_prefetch_bucket_size``."""
        return self._facts.get("field")

    @property
    def successors(self) -> tuple[str, ...]:
        """The paths to write instead of a deprecated, renamed or removed key."""
        return tuple(self._facts.get("replaced_by") or self._record.get("successor") or ())

    @property
    def is_read_by_config(self) -> bool:
        """Whether DeepSpeed's config classes read it; otherwise the code that uses it takes it out of a dictionary."""
        return self._facts.get("validated") != "elsewhere"

    @property
    def rejects_wrong_values(self) -> bool:
        """Whether a value of a wrong type, or out of range, is an error when the config is read."""
        return (self.is_checked and not self._facts.get("any_type")) or bool(self._said("rejects_wrong_values"))

    @property
    def rejects_when(self) -> Conditions:
        """Paths with the values under which a plain read refuses a wrong value; {} is always, if it does at all."""
        return self._conditions("rejects_wrong_values", default=True) or {}

    @property
    def rejects_values_not_listed(self) -> bool:
        """Whether a value outside the closed list is an error when the config is read, and not later or never."""
        return bool(self.enum) and self.rejects_wrong_values and not self._facts.get("enum_at_use")

    @property
    def takes_values_not_listed(self) -> bool:
        """Whether a value outside the closed list is no error where it is used either."""
        return bool(self._said("takes_unlisted"))

    @property
    def rejects_unknown_keys(self) -> bool:
        """Of a section: whether an unknown key is an error; false means that it is swallowed."""
        return self._facts.get("unknown_keys") == "reject"

    @property
    def required_when(self) -> Conditions | None:
        """Paths with the values under which its section must hold it, or reading fails; {} is always, None is never."""
        return self._conditions("required", default=False)

    @property
    def opened_when(self) -> Conditions | None:
        """Of a section: when DeepSpeed looks into it; {} is always, None is never: it is kept as it is."""
        return self._conditions("opened", default=True)

    @property
    def counts_empty(self) -> bool:
        """Of a section: whether an empty one is something else than none at all."""
        return bool(self._record.get("presence"))

    @property
    def acts_by_presence(self) -> bool:
        """Of a section: whether its mere presence does something, whatever its keys say."""
        return self._record.get("presence") is True

    @property
    def since(self) -> str | None:
        """The first release that reads it; "0.9.0" stands for 0.9.0 or earlier, None for a key that is only refused."""
        return next((span["from"] for span in self._record["spans"] if not is_gone(span)), None)

    @property
    def until(self) -> str | None:
        """The first release that no longer knows it, if there is one."""
        last = self._record["spans"][-1]
        return last["from"] if is_gone(last) else None

    @property
    def summary(self) -> str:
        """One sentence: what it does."""
        return self._text("summary")

    @property
    def doc(self) -> str:
        """Markdown: what DeepSpeed does with it."""
        return self._text("doc")

    @property
    def when(self) -> str:
        """When to change it, and to what."""
        return self._text("when")

    @property
    def trap(self) -> str:
        """What people get wrong about it."""
        return self._text("trap")

    @property
    def myth(self) -> str:
        """Common advice that does not hold, with the release since when."""
        return self._text("myth")

    @property
    def unit(self) -> str:
        """What a number counts: elements, bytes, steps …."""
        return self._text("unit")

    @property
    def values(self) -> Mapping[str, str]:
        """What each value means, by its text."""
        values: Mapping[str, str] = self._record.get("values", {})
        return values

    @property
    def suggestions(self) -> Sequence[Record]:
        """Sensible values: mappings with ``value`` and ``means``."""
        suggestions: Sequence[Record] = self._record.get("suggest", ())
        return suggestions

    @property
    def effective_when(self) -> Mapping[str, Sequence[object]]:
        """Paths with the values they must have, all of them, for the key to do anything."""
        conditions: Mapping[str, Sequence[object]] = self._said("effective_when", default={})
        return conditions

    @property
    def effective_when_any(self) -> Sequence[Mapping[str, Sequence[object]]]:
        """Conditions as in ``effective_when``, of which one must hold as well; no values: the path must be there."""
        alternatives: Sequence[Mapping[str, Sequence[object]]] = self._said("effective_when_any", default=())
        return alternatives

    @property
    def stages(self) -> tuple[int, ...]:
        """The ZeRO stages at which it does something; empty when the stage does not matter."""
        return tuple(
            stage for stage in self.effective_when.get("zero_optimization.stage", ()) if isinstance(stage, int)
        )

    @property
    def affects(self) -> tuple[str, ...]:
        """What a change of it can touch while it acts, most important first: names of the diff's effects, or "none"."""
        return tuple(self._record.get("affects", ()))

    @property
    def memory(self) -> Sequence[Record]:
        """What the elements of a number take: mappings that schemas/README.md describes, each for some stages."""
        memory: Sequence[Record] = self._record.get("memory", ())
        return memory

    @property
    def decisive(self) -> str:
        """Why its default is worth seeing where it is left out; "" for most keys."""
        return self._text("decisive")

    @property
    def related(self) -> tuple[str, ...]:
        """Paths to look at next."""
        return tuple(self._record.get("related", ()))

    @property
    def source(self) -> tuple[str, ...]:
        """Files of DeepSpeed, or threads, that the documentation stands on."""
        return tuple(self._record.get("source", ()))

    @property
    def history(self) -> tuple[Event, ...]:
        """What happened to it, release by release, oldest first; the first is that it was added."""
        return tuple(events(self._record["spans"]))

    def _said(self, name: str, *, default: Any = None) -> Any:  # noqa: ANN401 - whatever the record holds
        """Return a fact of the key as a whole: as the release had it, else as the documentation says."""
        return self._facts.get(name, self._record.get(name, default))

    def _conditions(self, name: str, *, default: bool) -> Conditions | None:
        said: bool | Conditions = self._said(name, default=default)
        if isinstance(said, bool):
            return {} if said else None
        return said

    def _text(self, name: str) -> str:
        return str(self._record.get(name, ""))

    def auto(self, consumer: Consumer) -> Auto:
        """Return what ``consumer`` makes of the value "auto" at this key."""
        filled = auto_of(self._auto, consumer)
        if filled is not None:
            return filled
        stated = AutoEffect(self._said("auto", default="string"))
        if self.is_checked and stated is AutoEffect.TEXT:
            return Auto(AutoEffect.DEFAULT)
        return Auto(stated)


def auto_of(fills: Mapping[str, Record], consumer: Consumer) -> Auto | None:
    """Return what ``consumer`` itself makes of "auto", from its record in ``fills``; None when it passes it on."""
    fill = fills.get(consumer.value)
    if fill is None:
        return None
    if not fill.get("from"):
        return Auto(AutoEffect.REFUSED)
    return Auto(
        AutoEffect.FILLED,
        say(fill["from"]),
        unless=fill.get("unless", ""),
        must_match=bool(fill.get("must_match")),
        fallback=fill.get("fallback"),
        usual=fill.get("usual"),
        overwrites=bool(fill.get("overwrites")),
        adds_section=bool(fill.get("adds_section")),
        english=fill["from"],
        short=say(fill.get("short") or fill["from"]),
    )
