"""What a tree is made of inside: shapes that know their width and what lies in them, and not where they stand.

Every offset in a shape counts code points from the start of the container (or member) that holds it. An edit therefore
changes the shapes around it and no others, and equal scalars of a text are one object. ``nodes`` gives shapes a place.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from dsmigrate.document.problems import Code

ABSENT = -1
"""The offset of a colon, value or comma that is not there."""


class Style(Enum):
    """How a scalar or a key is spelled."""

    DOUBLE = "double"
    SINGLE = "single"
    MULTILINE = "multiline"
    BARE = "bare"
    NUMBER = "number"
    LITERAL = "literal"


ScalarValue: TypeAlias = str | int | float | bool | None


class ScalarShape:
    """A scalar or a key: what it means, its width in code points, its style."""

    __slots__ = ("style", "value", "width")

    def __init__(self, value: ScalarValue, width: int, style: Style) -> None:
        self.value = value
        self.width = width
        self.style = style


class ContainerShape:
    """An object or an array; also the text as a whole, which holds the root.

    Attributes:
        is_object: whether the children are members.
        starts: the offset of each child.
        children: members of an object, values of an array.
        commas: the offset of the comma after each child, or ABSENT.
        notes: problems that lie here and not in a child container, as code, start and end.
        comments: start and end of the comments that lie here.
        width: code points from the opening bracket to behind the closing one.
        closed: whether the closing bracket is there.
        braces: False for a root object without braces.
        noted: whether there are notes or comments here or further inside.
        height: 1 for a container without containers in it.
        numbers: what ``number_of`` has found, made when it is first asked for.
    """

    __slots__ = (
        "braces",
        "children",
        "closed",
        "commas",
        "comments",
        "height",
        "is_object",
        "noted",
        "notes",
        "numbers",
        "starts",
        "width",
    )

    def __init__(self, *, is_object: bool, braces: bool = True) -> None:
        self.is_object = is_object
        self.starts: list[int] = []
        self.children: list[MemberShape | ValueShape] = []
        self.commas: list[int] = []
        self.notes: list[Note] = []
        self.comments: list[tuple[int, int]] = []
        self.width = 0
        self.closed = False
        self.braces = braces
        self.noted = False
        self.height = 1
        self.numbers: dict[object, int] | None = None

    def number_of(self, name: str) -> int | None:
        """Return the number of the member that the loader takes for ``name``: the last with a value, else the last."""
        if self.numbers is None:
            bare: dict[object, int] = {}
            valued: dict[object, int] = {}
            for number, child in enumerate(self.children):
                if isinstance(child, MemberShape) and child.key is not None:
                    (bare if child.value is None else valued)[child.key.value] = number
            self.numbers = bare | valued
        return self.numbers.get(name)

    def by_name(self) -> dict[object, ValueShape]:
        """Return the values by their keys, of equal keys the last."""
        members = (child for child in self.children if isinstance(child, MemberShape))
        return {child.key.value: child.value for child in members if child.key is not None and child.value is not None}


ValueShape: TypeAlias = ScalarShape | ContainerShape
Note: TypeAlias = tuple[Code, int, int]


class MemberShape:
    """A key and its value; the colon and the value at offsets from the start of the member, or ABSENT.

    A member that is being typed may lack its colon and its value; one whose value stands where a key should lacks its
    key.
    """

    __slots__ = ("colon", "key", "value", "value_at")

    def __init__(self, key: ScalarShape | None, colon: int, value_at: int, value: ValueShape | None) -> None:
        self.key = key
        self.colon = colon
        self.value_at = value_at
        self.value = value

    @property
    def width(self) -> int:
        """The code points from the start to the end of the last part that is there."""
        if self.value is not None:
            return self.value_at + self.value.width
        if self.colon != ABSENT:
            return self.colon + 1
        return self.key.width if self.key is not None else 0


def is_alike(one: ValueShape, other: ValueShape) -> bool:
    """Return whether two values are read as the same, type by type; ends at the first difference."""
    waiting: list[tuple[ValueShape | None, ValueShape | None]] = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if left is right:
            continue
        if isinstance(left, ScalarShape) and isinstance(right, ScalarShape):
            if left.value != right.value or type(left.value) is not type(right.value):
                return False
            continue
        if not isinstance(left, ContainerShape) or not isinstance(right, ContainerShape):
            return False
        if left.is_object != right.is_object or len(left.children) != len(right.children):
            return False
        if not left.is_object:
            pairs = zip(left.children, right.children, strict=True)
            waiting += ((value_of(mine)[1], value_of(its)[1]) for mine, its in pairs)
            continue
        mine, its = left.by_name(), right.by_name()
        if mine.keys() != its.keys():
            return False
        waiting += ((value, its[name]) for name, value in mine.items())
    return True


def value_of(child: MemberShape | ValueShape) -> tuple[int, ValueShape | None]:
    """Return the offset from the child's start, and the shape, of the value a child of a container is or has."""
    if isinstance(child, MemberShape):
        return child.value_at, child.value
    return 0, child
