"""Looking keys up: by path, at a release, with aliases and free names resolved."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from dsmigrate.knowledge import near, paths, store
from dsmigrate.knowledge.consumer import Auto, Consumer
from dsmigrate.knowledge.key import Key, auto_of
from dsmigrate.knowledge.spans import MISSING, Event, EventKind, Record, Status, status_at
from dsmigrate.knowledge.types import Parameter, TypeFacts
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import forgotten

_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})
_DEEPEST = 16
"""Parts of a path beyond which no key lies."""
_MOST = 32_000
"""Answers that are kept. Few configs ask for a tenth of them; an editor asks for every half-typed name."""


@functools.lru_cache(maxsize=16)
def knowledge(version: str | None = None) -> Knowledge:
    """Return the knowledge of a release: of the newest one that is known, unless ``version`` names another.

    A release that is not known stands for the newest known one before it. Raises ValueError for a text that is no
    version, and for releases before the first known one.
    """
    known: Sequence[str] = store.index()["releases"]
    if version is None:
        return Knowledge(known[-1])
    fitting = [release for release in known if order(release) <= order(version)]
    if not fitting:
        raise ValueError(f"DeepSpeed {version} is older than {known[0]}, the first release that is known")
    return Knowledge(fitting[-1])


class Knowledge:
    """The keys of one release. Files are read when a key of theirs is first asked for."""

    def __init__(self, version: str) -> None:
        """Take the keys as ``version`` knows them; ``knowledge()`` makes and keeps these."""
        self.version = version
        self._keys: dict[str, Key | None] = {}
        self._by_parts: dict[tuple[str | int, ...], Key | None] = {}
        self._canonical: dict[str, str] = {}
        self._autos: dict[tuple[str, Consumer], Auto | None] = {}
        self._children: dict[str, tuple[Key, ...]] = {}
        self._required: dict[str, tuple[Key, ...]] = {}

    def __repr__(self) -> str:
        return f"Knowledge({self.version!r})"

    def key(self, path: str | Sequence[str | int]) -> Key | None:
        """Return the key at a path, or None if no release since 0.9 knew it.

        ``path`` may be the path of a value in a config: other spellings (``prefetch_bucket_size``), names that are free
        (the metrics of ``curriculum_metrics``) and list indexes lead to the key that describes them. Whether *this*
        release has the key, says its ``status``.
        """
        if isinstance(path, tuple):
            if len(path) > _DEEPEST:
                return None
            if path not in self._by_parts:
                _make_room(self._by_parts)
                self._by_parts[path] = self.key(paths.spelled(path))
            return self._by_parts[path]
        asked = paths.spelled(path)
        if asked.count(paths.SEPARATOR) >= _DEEPEST:
            return None
        if asked not in self._keys:
            _make_room(self._keys)
            self._keys[asked] = self._find(asked)
        return self._keys[asked]

    def auto(self, path: str | Sequence[str | int], consumer: Consumer) -> Auto | None:
        """Return what ``consumer`` makes of "auto" at a path, parameters of optimizers and schedulers included.

        A consumer knows a key by its one path: it refuses "auto" at another spelling of a key that it fills.

        None means that the text reaches DeepSpeed at a place where the knowledge has no key.
        """
        asked = paths.spelled(path), consumer
        if asked not in self._autos:
            _make_room(self._autos)
            key = self.key(path)
            own = auto_of(_auto(asked[0]), consumer)
            self._autos[asked] = own if own is not None or key is None else key.auto(consumer)
        return self._autos[asked]

    def children(self, path: str = "") -> tuple[Key, ...]:
        """Return the keys of a section that this release has, deprecated ones included, in the order of their names.

        "" is the top level. Parameters of optimizers and schedulers are not among them: see ``optimizer``.
        """
        if path not in self._children:
            canonical = self.canonical(path) if path else ""
            found = [self.key(child) for child in store.children().get(canonical, ())]
            self._children[path] = tuple(key for key in found if key is not None and key.status in _HERE)
        return self._children[path]

    def required(self, path: str) -> tuple[Key, ...]:
        """Return the keys of a section that it cannot do without in this release, always or under conditions."""
        if path not in self._required:
            self._required[path] = tuple(key for key in self.children(path) if key.required_when is not None)
        return self._required[path]

    def sections(self) -> tuple[Key, ...]:
        """Return the sections at the top level of this release."""
        return tuple(key for key in self.children() if key.is_section)

    def every_path(self) -> Sequence[str]:
        """Return the path of every key that any release knew, in the order of the alphabet."""
        return list(store.index()["paths"])

    def canonical(self, path: str | Sequence[str | int]) -> str:
        """Return the path under which a key is documented: ``bf16.enabled`` for ``bfloat16.enabled``."""
        asked = paths.spelled(path)
        if asked not in self._canonical:
            key = self.key(asked)
            _make_room(self._canonical)
            self._canonical[asked] = asked if key is None else key.alias_of or key.path
        return self._canonical[asked]

    def default(self, path: str | Sequence[str | int]) -> object:
        """Return what the absence of a key means in this release, or ``MISSING``."""
        key = self.key(path)
        return MISSING if key is None or key.status not in _HERE else key.default

    def rejects_unknown_keys(self, path: str = "") -> bool:
        """Return whether this release refuses an unknown key in a section; the top level swallows them."""
        key = self.key(path) if path else None
        return key is not None and key.rejects_unknown_keys

    def takes_any_name(self, path: str | Sequence[str | int]) -> bool:
        """Return whether the keys of a section are names of one's own, as the metrics of ``curriculum_metrics``."""
        own = f"{self.canonical(path)}{paths.SEPARATOR}{paths.ANY_NAME}"
        return own in store.children() or own in store.paths_known()

    def nearest(self, name: str, section: str = "", *, limit: int = 3) -> list[str]:
        """Return the paths of this release that a wrong key ``name`` in ``section`` may mean, best first.

        Slips of keys of the section come first, then keys of that very name elsewhere.
        """
        inside = self.children(section)
        spellings = {key.name: key.path for key in inside} | {key.field: key.path for key in inside if key.field}
        found = [spellings[slip] for slip in near.nearest(name, spellings, limit=limit)]
        found += [path for path in self._named(name) if paths.parent(path) != section]
        return list(dict.fromkeys(found))[:limit]

    def search(self, text: str, *, limit: int = 5) -> list[str]:
        """Return the paths and type names that a person who typed ``text`` may mean, best first."""
        every: Sequence[str] = store.index()["paths"]
        asked = text.strip().lower()
        by_name: dict[str, str] = {}
        for path in sorted(every, key=len):
            by_name.setdefault(paths.name(path), path)
        for kind in ("optimizer", "scheduler"):
            by_name |= {name: f"{kind}.{name}" for name in store.index()[f"{kind}s"]}
        found = sorted((path for path in every if path.lower().endswith(f".{asked}")), key=len)
        found += near.nearest(asked, every, limit=limit) if "." in asked else []
        found += [by_name[name] for name in near.nearest(paths.name(asked), by_name, limit=limit)]
        words = near.words(asked)
        found += sorted((path for path in every if words <= near.words(path)), key=len)
        found += sorted((path for path in every if len(asked) > 3 and asked in path.lower()), key=len)
        return list(dict.fromkeys(found))[:limit]

    def ending_in(self, name: str) -> list[str]:
        """Return the paths of this release whose last name is ``name``, in any case and with dashes for underscores."""
        return self._named(name)

    def optimizers(self) -> tuple[TypeFacts, ...]:
        """Return the optimizer types that this release builds."""
        return self._types("optimizer")

    def schedulers(self) -> tuple[TypeFacts, ...]:
        """Return the scheduler types that this release builds."""
        return self._types("scheduler")

    def every_optimizer(self) -> tuple[TypeFacts, ...]:
        """Return the optimizer types of all releases, those that are gone included."""
        return _every_type("optimizer")

    def every_scheduler(self) -> tuple[TypeFacts, ...]:
        """Return the scheduler types of all releases."""
        return _every_type("scheduler")

    def optimizer(self, name: str) -> TypeFacts | None:
        """Return the optimizer type that DeepSpeed understands by ``name``, of whatever release; None for none."""
        return _type("optimizer", name, self.version)

    def scheduler(self, name: str) -> TypeFacts | None:
        """Return the scheduler type of that name, of whatever release; None for none. Case matters."""
        return _type("scheduler", name, self.version)

    def _types(self, kind: str) -> tuple[TypeFacts, ...]:
        now = order(self.version)
        return tuple(
            facts
            for facts in _every_type(kind)
            if order(facts.since) <= now and (facts.until is None or now < order(facts.until))
        )

    def _named(self, name: str) -> list[str]:
        folded = name.lower().replace("-", "_")
        found = (self.key(path) for path in store.names().get(folded, ()))
        return [key.path for key in found if key is not None and key.status in _HERE]

    def _find(self, asked: str) -> Key | None:
        for candidate in paths.candidates(asked):
            path = self._documented(candidate)
            if path is not None:
                return self._make(path)
        return None

    def _documented(self, path: str) -> str | None:
        """Return the path of the record that describes ``path``, after other spellings of its sections and name."""
        index = store.index()
        if path in store.paths_known():
            return path
        head, dot, last = path.rpartition(".")
        if not dot:
            return None
        section = self._documented(head.removesuffix(paths.ANY_ELEMENT))
        if section is None:
            return None
        section = index["aliases"].get(section, section)
        element = paths.ANY_ELEMENT if head.endswith(paths.ANY_ELEMENT) else ""
        known = f"{section}{element}.{last}"
        known = index["aliases"].get(known, known)
        return known if known in store.paths_known() else None

    def _make(self, path: str) -> Key:
        record = store.load(store.file_of(path))["keys"][path]
        return Key(path, self.version, record, status=self._status(path, record), auto=_auto(path))

    def _status(self, path: str, record: Record) -> Status:
        own = status_at(record, self.version)
        if own in {Status.REJECTED, Status.NOT_YET}:
            return own
        around = self.key(paths.parent(path).removesuffix(paths.ANY_ELEMENT)) if paths.parent(path) else None
        if around is not None and around.status in {Status.REJECTED, Status.NO_LONGER}:
            return around.status
        return own


def was_filled(path: str, consumer: Consumer, release: str | None) -> bool:
    """Return whether a release of a consumer fills a key that later ones do not; False where it is not known."""
    until = store.index()["consumers"][consumer.value].get("filled_until", {}).get(path)
    return release is not None and until is not None and order(release) < order(until)


def _make_room(answers: dict[Any, Any]) -> None:
    if len(answers) >= _MOST:
        answers.clear()


def _auto(path: str) -> Mapping[str, Record]:
    consumers: Mapping[str, Record] = store.index()["consumers"]
    found: dict[str, Record] = {}
    for consumer in Consumer:
        facts = consumers[consumer.value]
        if path in facts["fills"]:
            found[consumer.value] = facts["fills"][path]
        elif facts["otherwise"] == "refuses" and paths.ANY_ELEMENT not in path:
            found[consumer.value] = {}  # lists are not looked into
    return found


def _every_type(kind: str) -> tuple[TypeFacts, ...]:
    newest = store.index()["releases"][-1]
    found = (_type(kind, name, newest) for name in store.index()[f"{kind}s"])
    return tuple(facts for facts in found if facts is not None)


@functools.lru_cache(maxsize=256)
def _type(kind: str, name: str, version: str) -> TypeFacts | None:
    types: Mapping[str, Record] = store.load(f"{kind}_types")["types"]
    if name in types:
        return _type_facts(kind, name, types[name], version)
    folded = {known.lower(): known for known, record in types.items() if not record.get("case_sensitive")}
    known = folded.get(name.lower())
    return None if known is None else _type_facts(kind, known, types[known], version)


def _type_facts(kind: str, name: str, record: Record, version: str) -> TypeFacts:
    return TypeFacts(
        name=name,
        kind=kind,
        summary=record["summary"],
        doc=record["doc"],
        parameters={parameter: _parameter(parameter, facts, version) for parameter, facts in record["params"].items()},
        builds=tuple(record.get("class", ())),
        when=record.get("when", ""),
        trap=record.get("trap", ""),
        myth=record.get("myth", ""),
        case_sensitive=bool(record.get("case_sensitive")),
        untested=bool(record.get("untested")),
        torch=bool(record.get("torch")),
        since=record.get("since", "0.9.0"),
        until=record.get("until"),
        takes_anything=bool(record.get("takes_anything")),
        states=record.get("states"),
        switched_states=record.get("switched_states", {}),
        source=tuple(record.get("source", ())),
        related=tuple(record.get("related", ())),
    )


def _parameter(name: str, record: Record, version: str) -> Parameter:
    for one in sorted(record.get("earlier", ()), key=lambda one: order(one["until"]), reverse=True):
        if order(version) < order(one["until"]):
            record = {**record, **one}
    plain = record.get("english", {})
    return Parameter(
        name=name,
        type=tuple(record.get("type", ())),
        default=record.get("default", MISSING),
        items=tuple(record.get("items", ())),
        required=bool(record.get("required")),
        unit=record.get("unit", ""),
        summary=record.get("summary", ""),
        doc=record.get("doc", ""),
        when=record.get("when", ""),
        trap=record.get("trap", ""),
        only_with=plain.get("only_with", record.get("only_with", "")),
        only_said=record.get("only_with", ""),
        english=plain.get("summary", record.get("summary", "")),
        suggestions=tuple(record.get("suggest", ())),
        since=record.get("since", "0.9.0"),
        changes=tuple(Event(version, EventKind.DEFAULT, old, new) for version, old, new in record.get("changes", ())),
        enum=tuple(record.get("enum", ())),
        minimum=record.get("minimum"),
        exclusive_minimum=record.get("exclusive_minimum"),
        maximum=record.get("maximum"),
        exclusive_maximum=record.get("exclusive_maximum"),
        values=record.get("values", {}),
        parts=tuple(record.get("parts", ())),
        decisive=record.get("decisive", ""),
        torch_default=record.get("torch_default", MISSING),
    )


forgotten(knowledge.cache_clear)
forgotten(_type.cache_clear)
