"""Known bugs of releases that a config meets or avoids: those of DeepSpeed, and what releases of frameworks do."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import paths, store
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import FIRST, condition_text, json_text
from dsmigrate.languages import say

FILE = "known_bugs"
FRAMEWORKS = "frameworks"
_REPOSITORY = "https://github.com/deepspeedai/DeepSpeed"

Conditions = Mapping[str, Any]
"""Paths with what each must be: a list of values, of which it has one, or a table of comparisons.

An empty list is any value that the file gives. The comparisons are ``not``, a list of values of which it has none,
``above``, ``below``, and ``given``, whether the file gives it.
"""


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug: what happens, in which releases, to which configs, and what avoids it.

    ``what`` is a sentence without full stop. ``first`` to ``last`` have it, ``fixed`` is the release after those; both
    are None for one that the newest release still has. ``when`` must hold, and one of ``when_any`` if there are any.
    ``sets`` and ``removes`` avoid it without another release.
    """

    id: str
    what: str
    first: str
    last: str | None
    fixed: str | None
    severity: str
    effect: str
    keys: tuple[str, ...]
    when: Conditions
    when_any: tuple[Conditions, ...]
    sets: Mapping[str, object]
    removes: tuple[str, ...]
    source: tuple[str, ...]
    example: str
    ran: str
    package: str = ""
    """The package whose releases are meant, "" for DeepSpeed."""
    deepspeed: str = FIRST
    """The first release of DeepSpeed that it matters with."""
    usual_until: str = ""
    """The last release of DeepSpeed with which the package was usually one that has it; "" for none."""
    unless: tuple[str, ...] = ()
    """Arguments of the consumer, any of which avoids it unless it is 0."""
    through: bool = False
    """Whether it only meets settings that the Trainer gets from ``accelerate launch``."""

    def affects(self, version: str) -> bool:
        """Return whether a release has it."""
        now = order(version)
        return order(self.first) <= now and (self.last is None or now <= order(self.last))

    @property
    def said(self) -> str:
        """What happens, in the spoken language."""
        return say(self.what)

    @property
    def avoided(self) -> str:
        """The settings that avoid it, in backticks; "" for none."""
        written = [f"`{path}: {json_text(value)}`" for path, value in self.sets.items()]
        written += [say("no `{path}`", path=path) for path in self.removes]
        return say(", ").join(written)

    @property
    def cure(self) -> str:
        """What to do about it, as a clause; "" where nothing helps."""
        if self.fixed is None:
            return say("set {avoided} to avoid it", avoided=self.avoided) if self.avoided else ""
        if not self.avoided:
            return say("fixed in {fixed}", fixed=self.fixed)
        return say("fixed in {fixed}; until then set {avoided}", fixed=self.fixed, avoided=self.avoided)

    @property
    def span(self) -> str:
        """The releases that have it: "0.13.2 to 0.16.5"."""
        if self.last is None:
            return say("{first} and later", first=self.first)
        if self.first == self.last:
            return self.first
        if self.first == FIRST:
            return say("up to {last}", last=self.last)
        return say("{first} to {last}", first=self.first, last=self.last)

    @property
    def met(self) -> str:
        """Which configs meet it, in words."""
        every = [_words(self.when), say("; or ").join(map(_words, self.when_any))]
        return say("; ").join(part for part in every if part)

    @property
    def links(self) -> tuple[str, ...]:
        """The addresses of its sources."""
        return tuple(_link(source) for source in self.source)


@functools.cache
def every_bug() -> tuple[Bug, ...]:
    """Return every known bug in the order of the file."""
    return tuple(_bug(name, record) for name, record in store.load(FILE)["bugs"].items())


def bug(name: str) -> Bug | None:
    """Return the bug of that name; None for none."""
    return next((found for found in every_bug() if found.id == name), None)


@functools.cache
def of_frameworks() -> tuple[Bug, ...]:
    """Return what releases of Transformers and Accelerate do, and later ones do not, in the order of the file."""
    return tuple(_bug(name, record) for name, record in store.load(FRAMEWORKS)["bugs"].items())


@functools.lru_cache(maxsize=64)
def bugs_at(version: str) -> tuple[Bug, ...]:
    """Return the bugs that a release has; where it has none, nothing is read to tell."""
    if order(version) > order(store.index()["last_with_bugs"]):
        return ()
    return tuple(found for found in every_bug() if found.affects(version))


def bugs_of(path: str, version: str | None = None) -> list[Bug]:
    """Return the bugs that a key has a part in, of all releases or of one."""
    return [found for found in (every_bug() if version is None else bugs_at(version)) if path in found.keys]


def _bug(name: str, record: Mapping[str, Any]) -> Bug:
    return Bug(
        id=name,
        what=record["what"],
        first=record["first"],
        last=record.get("last"),
        fixed=record.get("fixed"),
        severity=record["severity"],
        effect=record["effect"],
        keys=tuple(record["keys"]),
        when=record.get("when", {}),
        when_any=tuple(record.get("when_any", ())),
        sets=record.get("set", {}),
        removes=tuple(record.get("remove", ())),
        source=tuple(record["source"]),
        example=record["example"],
        ran=record.get("ran", ""),
        package=record.get("package", ""),
        deepspeed=record.get("deepspeed", FIRST),
        usual_until=record.get("usual_until", ""),
        unless=tuple(record.get("unless", ())),
        through=bool(record.get("through")),
    )


def _link(source: str) -> str:
    return f"{_REPOSITORY}/issues/{source[1:]}" if source.startswith("#") else source


def _words(conditions: Conditions) -> str:
    plain = {path: wanted for path, wanted in conditions.items() if isinstance(wanted, Sequence)}
    told = [condition_text(plain)] if plain else []
    for path, wanted in conditions.items():
        if isinstance(wanted, Mapping):
            told += [_comparison(path, name, value) for name, value in wanted.items()]
    return say(", ").join(told)


def _comparison(path: str, name: str, value: object) -> str:
    if name == "given":
        return say("`{path}` is there", path=path) if value else say("`{path}` is left out", path=paths.name(path))
    if name == "not":
        assert isinstance(value, list)  # noqa: S101 - checked when it was compiled
        values = say(", ").join(f"`{json_text(one)}`" for one in value)
        return say("`{path}` is not {values}", path=path, values=values)
    sign = {"above": ">", "below": "<"}[name]
    return f"`{path}` {sign} {json_text(value)}"
