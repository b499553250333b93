"""What an expression can stand for while config code is walked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

ANY_NAME = "*"
"""The part of a path that stands for every name, as in ``curriculum_metrics.*.min_difficulty``."""
KEY = re.compile(r"[A-Za-z_]\w*")
ANY_ITEM = "[]"
"""What follows the path of a list to stand for each of its items."""


@dataclass(frozen=True)
class Unknown:
    """A value that the walk does not know; it stays beside the values that are known."""


@dataclass(frozen=True)
class Foreign:
    """Something of a module of the release that is not run, by its dotted name."""

    name: str


@dataclass(frozen=True)
class Item:
    """The value of the config at a path; the root has the path "". ``made`` says that it was computed from it."""

    path: str
    made: bool = False
    folded: bool = False
    """Whether upper or lower case was made of it, so that its spelling does not matter."""

    def child(self, key: str) -> Item:
        """Return the value of ``key`` below this one."""
        return Item(f"{self.path}.{key}" if self.path else key)


@dataclass(frozen=True, eq=False)
class Known:
    """A Python value of the release: a constant, a function, a class, a table of defaults."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Known):
            return False
        same_kind = type(self.value) is type(other.value)
        plain = isinstance(self.value, str | int | float | bool | type(None))
        return self.value is other.value or (same_kind and plain and bool(self.value == other.value))

    def __hash__(self) -> int:
        return hash(type(self.value))


@dataclass(frozen=True)
class EachKey:
    """The loop variable of ``for key in item``: any key of the section."""

    section: Item


@dataclass(eq=False)
class Struct:
    """A dict or an object that the walked code fills; identity matters, contents only grow."""

    entries: dict[str, Values] = field(default_factory=dict)
    kind: type | None = None
    """The class when this is an instance, whose attributes the entries are."""
    overlays: list[tuple[Item, frozenset[str]]] = field(default_factory=list)
    """Sections copied over the entries, each with the keys that were there before."""

    def add(self, name: str, values: Values) -> None:
        """Let ``name`` stand for these values too."""
        self.entries[name] = join(self.entries.get(name, ()), values)

    def sections(self, key: str) -> list[Item]:
        """Return the sections from which ``key`` may come: not those that were copied before the code set it."""
        return [section for section, before in self.overlays if key not in self.entries or key in before]


@dataclass(eq=False, frozen=True)
class Bound:
    """A method of an instance that is being walked."""

    owner: Struct
    function: Any


@dataclass(eq=False, frozen=True)
class Local:
    """A function that is defined inside the function that is being walked, with the names it sees there."""

    node: ast.FunctionDef
    env: dict[str, Values]


@dataclass(frozen=True)
class Sequence:
    """A list or tuple display, position by position."""

    parts: tuple[Values, ...]


Value = Unknown | Foreign | Item | Known | EachKey | Struct | Bound | Local | Sequence
Values = tuple[Value, ...]
"""Everything that an expression can be, in the order in which it was found."""
UNKNOWN: Values = (Unknown(),)


@dataclass(frozen=True)
class Arguments:
    """What a call passes: by position, by name, and what is unpacked with two stars."""

    positional: tuple[Values, ...] = ()
    named: dict[str, Values] = field(default_factory=dict)
    unpacked: Values = ()

    @property
    def every(self) -> Values:
        """All that is passed by position."""
        return join(*self.positional)

    def of(self, owner: Struct) -> Arguments:
        """Return the arguments of a method, with its object before them."""
        return Arguments(((owner,), *self.positional), self.named, self.unpacked)


def join(*groups: Iterable[Value]) -> Values:
    """Return all values of the groups, each once."""
    found: list[Value] = []
    for group in groups:
        found.extend(value for value in group if value not in found)
    return tuple(found)


def items(values: Values) -> list[Item]:
    """Return the parts of the config among ``values``."""
    return [value for value in values if isinstance(value, Item)]


def structs(values: Values) -> list[Struct]:
    """Return the dicts and objects that the code fills among ``values``."""
    return [value for value in values if isinstance(value, Struct)]


def known(values: Values) -> Known | None:
    """Return the one Python value that ``values`` is, or None."""
    return values[0] if len(values) == 1 and isinstance(values[0], Known) else None


def keys_of(values: Values) -> list[str]:
    """Return the config keys that an expression can be: known names, or any name of a section.

    A text like "." is no key: it is looked for in the text that the config holds.
    """
    named = [value.value for value in values if isinstance(value, Known) and isinstance(value.value, str)]
    any_name = [ANY_NAME for value in values if isinstance(value, EachKey)]
    return [name for name in named if KEY.fullmatch(name)] + any_name
