"""Slips in the names of keys: letters, case, dashes, and keys in another place."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsmigrate.knowledge import Key, Knowledge
from dsmigrate.knowledge.near import slips

SHORTEST = 3
"""Letters of the shortest name that is misspelled: of two letters, nobody can say which word was meant."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A key in a section under a wrong name, or in a wrong section, and the path that was meant."""

    kind: str
    section: str
    name: str
    meant: str
    type: str = ""
    """The optimizer type whose parameter it is."""

    @property
    def path(self) -> str:
        """Where the wrong key is."""
        return f"{self.section}.{self.name}" if self.section else self.name


def typo(rng: random.Random, name: str) -> str:
    """Return a name with one letter added, lost, changed or swapped with its neighbour."""
    at = rng.randrange(len(name))
    letter = rng.choice(string.ascii_lowercase)
    ways = (
        name[:at] + letter + name[at:],
        name[:at] + name[at + 1 :],
        name[:at] + letter + name[at + 1 :],
        name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :],
    )
    return rng.choice(ways)


def case(rng: random.Random, name: str) -> str:
    """Return a name in another case: upper, capital, or camel."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    return rng.choice((name.upper(), name.capitalize(), camel, camel[:1].lower() + camel[1:]))


def dash(_: random.Random, name: str) -> str:
    """Return a name with dashes."""
    return name.replace("_", "-")


KINDS: dict[str, Callable[[random.Random, str], str]] = {"typo": typo, "case": case, "dash": dash}
PARENT = "wrong parent"


def misspelled(rng: random.Random, known: Knowledge, key: Key, kind: str) -> Slip | None:
    """Return a slip of a key in its own section; None when it gives a name that means something."""
    name = KINDS[kind](rng, key.name)
    section = key.parent
    if name == key.name or len(key.name) < SHORTEST or not name.strip("_-") or is_a_name(known, section, name):
        return None
    return Slip(kind, section, name, key.path)


def misplaced(rng: random.Random, known: Knowledge, key: Key, sections: tuple[str, ...]) -> Slip | None:
    """Return a key in another section; None when it means something there, or its name is in several sections."""
    section = rng.choice(sections)
    if section in {key.parent, key.path} or is_a_name(known, section, key.name):
        return None
    return Slip(PARENT, section, key.name, key.path)


def is_a_name(known: Knowledge, section: str, name: str) -> bool:
    """Return whether any release knows the name in the section, or the section takes any."""
    path = f"{section}.{name}" if section else name
    return known.key(path) is not None or known.takes_any_name(section)


def is_plain(known: Knowledge, slip: Slip) -> bool:
    """Return whether one can say what was meant: no other key is as near, or lies elsewhere under that very name."""
    if slip.type:
        return True
    meant = slip.meant.rpartition(".")[2]
    if slip.kind == PARENT:
        return [path for path in known.ending_in(meant) if path != slip.meant] == []
    distance = slips(_folded(slip.name), _folded(meant), 2)
    rivals = [key for key in known.children(slip.section) if key.path != slip.meant]
    names = {name for key in rivals for name in (key.name, key.field) if name}
    names |= {path.rpartition(".")[2] for path in known.ending_in(slip.name)} - {meant}
    nearest = [slips(_folded(slip.name), _folded(name), 2) for name in names]
    return distance is not None and all(other is None or other > distance for other in nearest)


def _folded(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def swallowing(known: Knowledge) -> Iterator[str]:
    """Yield every section of the release that swallows unknown keys, the top level first."""
    yield ""
    for path in known.every_path():
        key = known.key(path)
        if (
            key is not None
            and key.status.value in {"present", "deprecated"}
            and key.alias_of is None
            and known.children(path)
            and not known.rejects_unknown_keys(path)
            and not path.endswith(".params")
            and not set("*[") & set(path)
        ):
            yield path
