"""Names that an installed release lacks, from what Python says of them: which releases of the package have them.

``schemas/deepspeed/names`` has, per package, the names that came or went among the releases that were read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsmigrate.languages import say
from dsmigrate.messages.entries import TITLES, Entry, Text
from dsmigrate.schemas_location import schema_json

_TITLES = {**TITLES, "trl": "TRL", "peft": "PEFT"}
PACKAGES = {
    package: _TITLES[package]
    for package in ("deepspeed", "transformers", "accelerate", "torch", "pytorch_lightning", "trl", "peft")
}
"""The packages whose names are read, with their titles."""
_NAME, _PATH = r"'(?P<name>\w+)'", r"'(?P<module>\w+(?:\.\w+)*)'"
_SAID = {
    "No module named": ("ModuleNotFoundError", re.compile(rf"No module named {_PATH}")),
    "cannot import name": (
        "ImportError",
        re.compile(rf"cannot import name {_NAME} from (?:partially initialized module )?{_PATH}"),
    ),
    "has no attribute": (
        "AttributeError",
        re.compile(
            rf"(?:module {_PATH}|(?:type object )?'(?P<owner>\w+)'(?: object)?) has no attribute {_NAME}",
        ),
    ),
    "got an unexpected keyword": (
        "TypeError",
        re.compile(r"(?:(?P<owner>\w+)\.)?\b(?P<method>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'"),
    ),
}
"""What Python says, by words that it always has in it."""
_PARTS = ("module", "owner", "method", "name")
_CALL = re.compile(r"\b([A-Z]\w*)\(")
_LINE = 300
"""Up to Python 3.9 ``__init__`` is told without its class, which so many characters before it call."""
Spans = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Missing(Entry):
    """A name that a release lacks: ``spans`` are the releases that have it, the first and the last of each stretch.

    ``before`` and ``after`` are the releases around them that lack it, "" where none was read; ``now`` is the module
    that has a name of that kind in the newest release, "" where it is not known.
    """

    spans: Spans
    before: str
    after: str
    now: str

    @property
    def title(self) -> str:
        """The package as people know it."""
        return PACKAGES[self.package]

    @property
    def page(self) -> str:
        """Where in ``docs/messages`` such names are described."""
        return "README.md#names-of-other-releases"

    @property
    def cause(self) -> str:
        """Which releases have the name."""
        filled = {"name": self.name, "title": self.title}
        if len(self.spans) == 1 and not self.before:
            return say(
                "`{name}` is in {title} up to {last}; {after} does not have it.",
                **filled,
                last=self.spans[0][1],
                after=self.after,
            )
        if len(self.spans) == 1 and not self.after:
            return say(
                "`{name}` is in {title} since {first}; {before} does not have it.",
                **filled,
                first=self.spans[0][0],
                before=self.before,
            )
        spans = say(", ").join(say("{first} to {last}", first=first, last=last) for first, last in self.spans)
        return say("`{name}` is in {title} {spans} only.", **filled, spans=spans)

    @property
    def cure(self) -> str:
        """Which release to install, and where the name is now."""
        first, last = self.spans[-1]
        if not self.after:
            newer = say("Install {title} {first} or newer.", title=self.title, first=first)
            is_module = self.texts[0].kind == "ModuleNotFoundError"
            return (
                newer + say(" If yours is, it is not whole: install it again, from its wheel.") if is_module else newer
            )
        is_old = len(self.spans) == 1 and not self.before
        releases = say("{last} or older", last=last) if is_old else say("{first} to {last}", first=first, last=last)
        told = say(
            "Install {title} {releases}, or a newer version of the code that asks for it.",
            title=self.title,
            releases=releases,
        )
        return told + say(" In newer releases it is in `{now}`.", now=self.now) if self.now else told


def among(tidy: str) -> Iterator[tuple[Missing, int, int]]:
    """Yield the names that Python says are missing in a tidy text, where their releases are known, with the places."""
    for words, (kind, pattern) in _SAID.items():
        if words in tidy:
            for match in pattern.finditer(tidy):
                filled = match.groupdict("")
                if filled.get("method") == "__init__" and not filled["owner"]:
                    called = _CALL.findall(tidy, max(0, match.start() - _LINE), match.start())
                    filled["owner"] = called[-1] if called else ""
                found = _missing(match[0], kind, tuple(filled.get(part, "") for part in _PARTS))
                if found is not None:
                    yield found, match.start(), match.end()


@functools.cache
def _names(package: str) -> Mapping[str, Any]:
    content = schema_json(f"deepspeed/names/{package}.json")
    assert isinstance(content, dict)  # noqa: S101 - our own file
    return content


@functools.lru_cache(maxsize=1024)
def _missing(said: str, kind: str, parts: tuple[str, ...]) -> Missing | None:
    module, owner, method, name = parts
    if module:
        package = _package(module)
        found = _in_module(package, module, name) if package else None
        full = f"{module}.{name}".rstrip(".")
    else:
        package, found = _in_class(owner, method, name)
        full = f"{owner}.{method}({name})" if method else f"{owner}.{name}"
    if found is None:
        return None
    spans = tuple((first, last) for first, last in found)
    releases: list[str] = _names(package)["releases"]
    start, end = releases.index(spans[0][0]), releases.index(spans[-1][1])
    return Missing(
        name=full,
        package=package,
        english_cause="",
        english_cure="",
        keys=(),
        codes=(),
        texts=(Text(said, "", kind, ()),),
        spans=spans,
        before=releases[start - 1] if start else "",
        after=releases[end + 1] if end + 1 < len(releases) else "",
        now=_now(package, module, name) if module else "",
    )


def _package(module: str) -> str:
    top = module.partition(".")[0]
    if top == "lightning_fabric":
        return "pytorch_lightning"
    return top if top in PACKAGES else ""


def _in_module(package: str, module: str, name: str) -> list[list[str]] | None:
    """Return the releases that have a module, or a name or another module in it."""
    names = _names(package)["names"]
    found: list[list[str]] | None = names.get(module, {}).get(name)
    return found or (names.get(f"{module}.{name}", {}).get("") if name else None)


def _in_class(owner: str, method: str, name: str) -> tuple[str, list[list[str]] | None]:
    """Return package and releases of a member of a class, or of a parameter of a method of it.

    A class of data has its fields for the parameters of ``__init__``. None where no class of that name has it, or
    several with other releases.
    """
    wanted = [f"{owner}.{method}({name})"] if method else [f"{owner}.{name}"]
    if method == "__init__":
        wanted.append(f"{owner}.{name}")
    for one in wanted:
        found = [
            (package, names[one]) for package in PACKAGES for names in _names(package)["names"].values() if one in names
        ]
        if found:
            return found[0] if all(spans == found[0][1] for _, spans in found) else ("", None)
    return "", None


def _now(package: str, module: str, name: str) -> str:
    """Return the one other module that has a name in the newest release, or that ends as a missing module does."""
    newest = _names(package)["releases"][-1]
    last = module.rpartition(".")[2]
    found = [
        other
        for other, names in _names(package)["names"].items()
        if other != module and (name or other.rpartition(".")[2] == last)
        and any(stretch[1] == newest for stretch in names.get(name, ()))
    ]  # fmt: skip
    return found[0] if len(found) == 1 else ""
