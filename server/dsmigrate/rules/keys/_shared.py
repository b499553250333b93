"""Keys that no release knows: which there are, and what each may mean."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsmigrate.document import Node, Object, Path, Scalar
from dsmigrate.knowledge import Consumer, Key, Knowledge, Status
from dsmigrate.knowledge.elsewhere import meant_by
from dsmigrate.knowledge.near import nearest, slips
from dsmigrate.rules.context import TYPED, Context, Entry
from dsmigrate.rules.types._shared import is_shadowed
from dsmigrate.rules.types._values import kinds_of

HERE = frozenset({Status.PRESENT, Status.DEPRECATED})
APPLICATION = dict.fromkeys((Consumer.ACCELERATE, Consumer.TRANSFORMERS), frozenset({"msamp"}))
"""Top-level keys that a consumer reads itself, the Trainer through Accelerate."""
_COMMENT = re.compile(
    r"[_#$/%*;!-].*|.*(?:comment|readme|read_the_docs)s?_?|notes?|description|todo|help", re.IGNORECASE
)
_MANY = 3
"""More sections than these have the name: it says nothing about where a key belongs."""
_FAR = 8
"""The length from which a name may be a slip of a key of another section."""

_FEW = 8
"""So many keys at the top say nothing about whom a file is for."""
_CUT = 4
"""The letters that are left of a word that is cut short."""

_GUESSED = 500
"""Unknown keys of a file beyond which none is held against all that there are: it is no slip any more."""

_NAMES = 256
"""Answers about names that are kept: they are the same from one keystroke to the next."""


class Slip(enum.Enum):
    """How a wrong key came about."""

    SPELLING = "spelling"
    """A key of the same section, misspelt."""
    PLACE = "place"
    """The name of a key of another section."""
    BOTH = "both"
    """A misspelt key of another section."""
    VALUE = "value"
    """A value that is the name of another section."""
    PART = "part"
    """Some of the words of a key of the same section."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What a wrong key may mean: the canonical path of a key, or of a parameter of the optimizer or scheduler."""

    slip: Slip
    path: str
    exact: bool
    """Whether only case, dashes, or underscores differ."""

    @property
    def target(self) -> Path:
        """The path as a place in a file."""
        return tuple(self.path.split("."))

    @property
    def name(self) -> str:
        """The name of the key that is meant."""
        return self.path.rpartition(".")[2]


def is_comment(name: str) -> bool:
    """Return whether a key is there to be read by people: ``_comment``, ``//``, ``$schema``."""
    return _COMMENT.fullmatch(name) is not None


def section_of(context: Context, path: Path) -> str:
    """Return the canonical path of the section that holds a member; "" at the top."""
    around = path[:-1]
    if context.known.key(around) is None and around and context.known.takes_any_name(around[:-1]):
        return f"{context.known.canonical(around[:-1])}.*"
    return context.known.canonical(around) if around else ""


def unknown(context: Context) -> Sequence[tuple[Entry, str]]:
    """Return the members that no release knows, each with its section; parameters and free names are none."""
    return context.once(unknown, lambda: tuple(_unknown(context)))


def _unknown(context: Context) -> Iterator[tuple[Entry, str]]:
    for entry in context.entries:
        around = entry.path[:-1]
        if entry.key is not None or entry.is_parameter or context.known.takes_any_name(around):
            continue
        if is_gone(context, around) or is_shadowed(context, entry.path):
            continue
        if not around and entry.name in APPLICATION.get(context.consumer, ()):
            continue
        if any(schema.described(entry.path) is not None for schema in context.facts.schemas):
            continue
        yield entry, section_of(context, entry.path)


def is_of_another_program(context: Context) -> bool:
    """Return whether most keys of a file are none of DeepSpeed's: what stands there is not meant for it."""
    return context.once(is_of_another_program, lambda: _is_of_another_program(context))


def _is_of_another_program(context: Context) -> bool:
    top = [entry for entry in context.entries if len(entry.path) == 1 and not is_comment(entry.name)]
    return 2 * sum(entry.key is None for entry in top) > len(top) > _FEW


def is_gone(context: Context, path: Path) -> bool:
    """Return whether a section, or one around it, is not there in this release: it is told of once, as a whole."""
    keys = [context.known.key(path[:length]) for length in range(1, len(path) + 1)]
    return any(key is not None and key.status not in HERE for key in keys)


def refuses(context: Context, section: str, entry: Entry | None = None) -> bool:
    """Return whether DeepSpeed rejects a config for an unknown key of a section.

    An ``entry`` whose value is "auto" is dropped before its name is looked at
    (deepspeed/runtime/config_utils.py:DeepSpeedConfigModel).
    """
    if entry is not None and _is_auto(entry):
        return False
    return bool(section) and context.known.rejects_unknown_keys(section)


def guesses(context: Context, entry: Entry, section: str) -> list[Guess]:
    """Return what a wrong key may mean, best first; nothing behind the first ``_GUESSED`` unknown keys of a file."""
    last = context.once("the last guessed", lambda: _last_guessed(context))
    if entry.member.start > last:
        return []
    return context.once((guesses, entry.path, entry.member.start), lambda: _guesses(context, entry, section))


def _last_guessed(context: Context) -> int:
    starts = sorted(entry.member.start for entry, _ in unknown(context))
    return starts[_GUESSED - 1] if len(starts) > _GUESSED else len(context.document.text)


def _guesses(context: Context, entry: Entry, section: str) -> list[Guess]:
    name, known = entry.name, context.known
    slips = _near(known, name, section)
    exact = [guess for guess in slips if guess.exact]
    if exact or (not section and is_of_another_program(context)):
        return exact
    exact = [*_by_value(context, entry, section), *_by_other_name(context, name, section)]
    elsewhere = [Guess(Slip.PLACE, path, exact=True) for path in _elsewhere(context, entry, section)]
    elsewhere = elsewhere or [*_written_out(known, name, section)]
    far = () if slips or elsewhere else _far(known, name, section, may_be_section=_may_be_section(entry))
    part = () if slips or elsewhere or far else _part(known, name, section)
    found = [*exact, *elsewhere, *slips, *far, *part]
    return [guess for number, guess in enumerate(found) if guess.path not in {other.path for other in found[:number]}]


def _by_value(context: Context, entry: Entry, section: str) -> list[Guess]:
    """Return the section that a value names: ``bfloat16`` in ``fp16`` means ``bf16``."""
    value = entry.node.value() if isinstance(entry.node, Scalar) and section else None
    key = context.known.key((value,)) if isinstance(value, str) else None
    if key is None or not key.is_section or section in {key.path, key.alias_of}:
        return []
    return [Guess(Slip.VALUE, f"{key.alias_of or key.path}.enabled", exact=True)]


def _by_other_name(context: Context, name: str, section: str) -> list[Guess]:
    """Return the key that another program calls by this name, unless the file gives that as well."""
    key = context.known.key(meant_by().get(name, ""))
    if key is None or key.status not in HERE or key.name == name or context.has(key.path):
        return []
    return [Guess(Slip.SPELLING if key.parent == section else Slip.BOTH, key.path, exact=True)]


@functools.lru_cache(maxsize=_NAMES)
def _written_out(known: Knowledge, name: str, section: str) -> tuple[Guess, ...]:
    """Return the key whose words a name writes out: ``gradient_accumulation_dtype`` means ``grad_accum_dtype``."""
    words = tuple(_folded(name).split("_"))
    found = [key for cut, key in _by_words(known).get(len(words), ()) if _shortens(cut, words)]
    slip = {True: Slip.SPELLING, False: Slip.BOTH}
    return tuple(Guess(slip[key.parent == section], key.path, exact=False) for key in found[:1])


@functools.lru_cache(maxsize=16)
def _by_words(known: Knowledge) -> dict[int, list[tuple[tuple[str, ...], Key]]]:
    """Return the keys of two words or more with these, by how many they have."""
    found: dict[int, list[tuple[tuple[str, ...], Key]]] = {}
    for key in _every_key(known):
        words = tuple(_folded(key.name).split("_"))
        if len(words) > 1:
            found.setdefault(len(words), []).append((words, key))
    return found


def _shortens(short: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether some of the words are cut to four letters or more, and the others are the same."""
    pairs = [*zip(short, words, strict=True)]
    return short != words and all(word.startswith(cut) and (cut == word or len(cut) >= _CUT) for cut, word in pairs)


@functools.lru_cache(maxsize=_NAMES)
def _near(known: Knowledge, name: str, section: str) -> tuple[Guess, ...]:
    """Return the keys of the same section that a name is a slip of."""
    inside = _spellings(known, section)
    return tuple(Guess(Slip.SPELLING, inside[near], _bare(near) == _bare(name)) for near in nearest(name, inside))


@functools.lru_cache(maxsize=_NAMES)
def _spellings(known: Knowledge, section: str) -> dict[str, str]:
    children = [key for key in known.children(section) if key.status is not Status.REJECTED]
    own = {key.name: key.path for key in children if key.name != "*"}
    return {key.field: key.path for key in children if key.field} | own


def _elsewhere(context: Context, entry: Entry, section: str) -> list[str]:
    """Return the keys of that very name in other sections, the likeliest first."""
    found = [path for path in context.known.ending_in(_folded(entry.name)) if "*" not in path and "[]" not in path]
    found = [path for path in found if path.rpartition(".")[0] != section]
    keys = [key for key in map(context.known.key, found) if key is not None and key.alias_of is None]
    keys = [key for key in keys if not key.is_section or _may_be_section(entry)]
    ranked = sorted(keys, key=lambda key: _rank(context, entry, section, key))
    if len(keys) > _MANY or (len(keys) > 1 and "_" not in entry.name and not _is_near(context, section, keys)):
        ranked = []
    parameters = [] if section not in {*TYPED, ""} else _parameters(context, entry, section)
    return [*parameters, *(key.path for key in ranked)]


def _parameters(context: Context, entry: Entry, section: str) -> list[str]:
    """Return the parameter of the type that the file names, for a key that stands beside ``params``."""
    for kind in (section,) if section else TYPED:
        facts = context.type_of("optimizer" if kind == "optimizer" else "scheduler")
        if facts is not None and section and entry.name in facts.parameters:
            return [f"{kind}.params.{entry.name}"]
    return []


def _rank(context: Context, entry: Entry, section: str, key: Key) -> tuple[bool, int, bool, int, str]:
    node = entry.node
    fits = not key.type or node is None or not _kinds(node).isdisjoint({*key.type, "null"}) or _is_auto(entry)
    mine, its = section.split(".") if section else [], key.parent.split(".") if key.parent else []
    shared = next((at for at, (a, b) in enumerate(zip(mine, its, strict=False)) if a != b), min(len(mine), len(its)))
    there = not key.parent or context.has(key.parent)
    return not fits, -shared, not there, key.path.count("."), key.path


def _kinds(node: Node) -> set[str]:
    if isinstance(node, Scalar):
        return kinds_of(node.value())
    return {"object" if isinstance(node, Object) else "array"}


def _may_be_section(entry: Entry) -> bool:
    return not isinstance(entry.node, Scalar) or entry.node.value() in (None, "auto")


def _is_near(context: Context, section: str, keys: list[Key]) -> bool:
    """Return whether one of the keys lives below the section, or in one that the file has."""
    return any((section and key.path.startswith(f"{section}.")) or context.has(key.parent) for key in keys)


def _is_auto(entry: Entry) -> bool:
    return isinstance(entry.node, Scalar) and entry.node.value() == "auto"


@functools.lru_cache(maxsize=_NAMES)
def _far(known: Knowledge, name: str, section: str, *, may_be_section: bool) -> tuple[Guess, ...]:
    """Return the key of another section that a long name is a slip of."""
    if len(name) < _FAR:
        return ()
    names = _elsewhere_named(known, section, len(name), may_be_section=may_be_section)
    close = nearest(name, names, limit=1)
    return tuple(Guess(Slip.BOTH, names[other], exact=False) for other in close if _slips(name, other) <= 2)


@functools.lru_cache(maxsize=_NAMES)
def _elsewhere_named(known: Knowledge, section: str, length: int, *, may_be_section: bool) -> dict[str, str]:
    """Return the keys of other sections whose names are about as long, by those names."""
    names: dict[str, str] = {}
    for key in _every_key(known):
        fits = may_be_section or not key.is_section
        if fits and key.parent != section and abs(len(key.name) - length) <= 2:
            names.setdefault(key.name, key.path)
    return names


@functools.lru_cache(maxsize=16)
def _every_key(known: Knowledge) -> tuple[Key, ...]:
    """Return the keys of a release that have a name of their own, outermost first."""
    every = sorted(known.every_path(), key=lambda path: (path.count("."), path))
    keys = (known.key(path) for path in every if "*" not in path and "[]" not in path)
    return tuple(key for key in keys if key is not None and key.status in HERE)


def _slips(left: str, right: str) -> int:
    found = slips(_folded(left), _folded(right), 2)
    return 3 if found is None else found


@functools.lru_cache(maxsize=_NAMES)
def _part(known: Knowledge, name: str, section: str) -> tuple[Guess, ...]:
    """Return the keys of the same section that hold all words of a name of two or more, in their order."""
    inside, words = _spellings(known, section), _folded(name).split("_")
    if len(words) < 2:
        return ()
    holding = [other for other in inside if _in_order(words, _folded(other).split("_"))]
    return tuple(Guess(Slip.PART, inside[other], exact=False) for other in sorted(holding, key=len)[:3])


def _in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    rest = iter(others)
    return all(word in rest for word in words)


def _bare(name: str) -> str:
    return _folded(name).replace("_", "")


def _folded(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return spaced.lower().replace("-", "_").replace(" ", "_")
