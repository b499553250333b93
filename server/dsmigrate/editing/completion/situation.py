"""What the file says, as far as completion asks: single keys, looked up without a walk over the file."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from dsmigrate.document import Document, Member, Object
from dsmigrate.document.shapes import MemberShape
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Knowledge, Status, TypeFacts, store
from dsmigrate.rules.context import TYPED, UNKNOWN, Context, Entry

_PARAMS = frozenset((kind, "params") for kind in TYPED)
_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})
_STAGE = "zero_optimization.stage"
_DEVICES: Mapping[str, Literal["offload_optimizer", "offload_param"]] = {
    "zero_optimization.offload_optimizer.device": "offload_optimizer",
    "zero_optimization.offload_param.device": "offload_param",
}


class Situation(Context):
    """A context that finds an entry by going down its path, for texts of which a few keys matter.

    ``entries`` are those of ``optimizer`` and ``scheduler`` alone.
    """

    def __init__(self, view: View, document: Document) -> None:
        """Look at ``document``, the text of ``view`` or that text without what is being typed."""
        unknown = frozenset(start for start, _ in view.unknown)
        super().__init__(document, view.known, consumer=view.consumer, facts=view.settings.facts, unknown=unknown)
        self.whole = view.whole
        """Whether the text shows every key of the config."""
        self._found: dict[str, Entry | None] = {}
        self._facts: dict[str, object] = {}
        self.reader = view.consumer.value
        self.conditions: dict[object, bool] = {}
        """Which conditions hold, as far as somebody asked; kept by those who ask."""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:  # noqa: D102 - as the class says
        found: list[Entry] = []
        for kind in TYPED:
            member = None if self.root is None else self.root.get(kind)
            if member is not None and isinstance(member.node, Object):
                self._collect(member.node, (kind,), found)
        return tuple(found)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names at the top of the file."""
        children = () if self.root is None else self.root.shape.children
        return frozenset(str(child.key.value) for child in children if isinstance(child, MemberShape) and child.key)

    def entry(self, path: str) -> Entry | None:  # noqa: D102 - as in Context
        if path not in self._found:
            self._found[path] = self._look(path)
        return self._found[path]

    def _look(self, path: str) -> Entry | None:
        canonical = self.known.canonical(path)
        top = canonical.partition(".")[0]
        if top not in self.names and self.names.isdisjoint(other_names().get(top, ())):
            return None
        here: tuple[str, ...] = ()
        section, walked = self.root, ""
        member: Member | None = None
        for name in (path if "*" in canonical else canonical).split("."):
            walked = f"{walked}.{name}" if walked else name
            member = None if section is None else _member(section, walked, name)
            if member is None:
                return None
            here = (*here, member.name or name)
            section = member.node if isinstance(member.node, Object) else None
        if member is None or member.node is None:
            return None
        typed = len(here) == 3 and here[:2] in _PARAMS
        return Entry(here, member, self.known.key(here), member.node, self._parameter(here) if typed else None)

    def assuming(self, path: str, value: object) -> Situation:
        """Return the situation with another value for a key; "auto" that the consumer fills is UNKNOWN."""
        other = copy.copy(self)
        auto = self.known.auto(path, self.consumer) if value == "auto" else None
        other.suppose({**self._values, path: UNKNOWN if auto is not None and auto.works else value})
        return other

    def suppose(self, values: dict[str, object]) -> None:
        """Take ``values`` for what the file says."""
        self._values = values
        self.memory = {}

    def gives(self, path: str) -> bool:
        """Return whether the file has a key that the release reads."""
        entry = self.entry(path)
        return entry is not None and (entry.key is None or entry.key.status in _HERE)

    def fact(self, path: str) -> object:
        """Return what counts as the value of a key: its default where it is left out, types by the name of their facts.

        MISSING and UNKNOWN are as for ``value``; a key that the release does not read is MISSING.
        """
        if path not in self._facts:
            self._facts[path] = self._fact(path)
        return self._facts[path]

    def _fact(self, path: str) -> object:
        if path == _STAGE:
            stage = self.stage
            return UNKNOWN if stage is None else stage
        if path in _DEVICES:
            device = self.device(_DEVICES[path])
            return UNKNOWN if device is None else device
        if path in {"optimizer.type", "scheduler.type"}:
            facts = self.facts_of(path.partition(".")[0])
            return self.value(path) if facts is None else facts.name
        key = self.known.key(path)
        if key is not None and key.status not in _HERE:
            return MISSING
        return normal(path, self.value(path), self.known)

    def facts_of(self, kind: str) -> TypeFacts | None:
        """Return the type that "optimizer" or "scheduler" names, of whatever release."""
        return self.type_of("optimizer" if kind == "optimizer" else "scheduler")


def normal(path: str, value: object, known: Knowledge) -> object:
    """Return a value as ``fact`` has it: what counts as a switch is True or False."""
    if isinstance(value, bool | list | dict) or value is MISSING or value is UNKNOWN or value is None:
        return value
    key = known.key(path)
    if key is not None and key.type[:1] == ("boolean",):
        return value not in {0, "false", "0", "no", "off", ""}
    return value


def _member(section: Object, canonical: str, name: str) -> Member | None:
    """Return the member that gives a key in whatever spelling; the own name first, unless its value is null."""
    own = section.get(name)
    others = other_names().get(canonical)
    if others is None or (own is not None and own.node is not None and own.node.value() is not None):
        return own
    return next((found for other in others if (found := section.get(other)) is not None), own)


@functools.cache
def other_names() -> Mapping[str, tuple[str, ...]]:
    """Return the second spellings of keys, by the path they stand for."""
    found: dict[str, tuple[str, ...]] = {}
    aliases: Mapping[str, str] = store.index()["aliases"]
    for other, path in aliases.items():
        found[path] = (*found.get(path, ()), other.rpartition(".")[2])
    return found
