"""What an action is, before and after it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsmigrate.document import Path, TextEdit
from dsmigrate.editing.view import View

Data = tuple[str | int, ...]
"""What an action is carried out from: the name of its feature, then what that feature asks for. Plain JSON values."""

QUICK_FIX = "quickfix"
REWRITE = "refactor.rewrite"
FIX_ALL = "source.fixAll.dsmigrate"


@dataclass(frozen=True, slots=True)
class Mended:
    """A finding that an action mends: its code and its range."""

    code: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Action:
    """Something that could be done at a place; ``data`` is enough to do it later.

    ``kind`` is a code action kind of the protocol. ``preferred`` marks the one mend that is safe and usual, ``codes``
    the findings that go away. ``disabled`` says why it is shown and cannot be done, "" when it can.
    """

    title: str
    kind: str
    data: Data
    preferred: bool = False
    codes: tuple[Mended, ...] = ()
    disabled: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an action comes to: edits of the text, what they do, and what is left for the person, a sentence each.

    Without edits nothing can be done, and ``left`` says why.
    """

    edits: tuple[TextEdit, ...] = ()
    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Here:
    """A range of the text, the path of the innermost member around it, and that of the innermost object around it."""

    start: int
    end: int
    path: Path
    section: Path

    def is_in(self, path: Path) -> bool:
        """Return whether the range lies in the member at ``path``."""
        return self.path[: len(path)] == path


@dataclass(frozen=True, slots=True)
class Feature:
    """One sort of actions: their kind, how they are offered at a place, and carried out.

    ``carry_out`` is given the view and what follows the name in the data, which are values of ``takes``.
    """

    name: str
    kind: str
    offer: Callable[[View, Here], Iterator[Action]]
    carry_out: Callable[..., Outcome]
    takes: tuple[type, ...] = ()
