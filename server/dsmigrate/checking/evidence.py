"""For which release and which consumer a config is, where nobody says so: what the files around it show."""

from __future__ import annotations

import fnmatch
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.document import Document, Scalar
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import MissingFileError, read
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.knowledge.wording import FIRST
from dsmigrate.languages import say

DEEPSPEED = "deepspeed"
FRAMEWORKS = ("transformers", "accelerate", "trl")
"""Packages that hand configs on, whose release is looked for as well."""
_PINNING = (
    "requirements*.txt",
    "requirements/*.txt",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "environment*.y*ml",
    "constraints*.txt",
    "Dockerfile*",
    "*.[Dd]ockerfile",
)
_LOCKING = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")
_IMPORTS = {
    Consumer.ACCELERATE: re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+accelerate\b"),
    Consumer.TRANSFORMERS: re.compile(
        r"(?m)^[ \t]*(?:from|import)[ \t]+(?:transformers|trl|peft|llamafactory|swift)\b"
    ),
    Consumer.DEEPSPEED: re.compile(r"(?m)\bdeepspeed\s*\.\s*(?:initialize|init_distributed)\s*\("),
}
_LARGEST = 1 << 20
_SCRIPTS = 40
UPWARD = 6
"""How many folders are asked for a pin, from that of the config upward."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What is taken, and why, in words that end a sentence: "DeepSpeed 0.16.4, pinned in requirements.txt"."""

    value: str
    why: str
    by_auto: bool = False
    """Whether nothing but an "auto" in the config says so."""
    is_older: bool = False
    """Whether it stands for a release that is older than all that are known."""


def release_for(folder: Path) -> Guess:
    """Return the DeepSpeed release that a config in ``folder`` is for.

    The one pinned nearest upward, or the oldest known for an older one, else the one installed beside dsmigrate, else
    the newest that is known.
    """
    return _release_for(resolved(folder))


def frameworks_for(folder: Path | None, release: str) -> dict[str, str]:
    """Return the releases of Transformers, Accelerate and TRL for a config in ``folder``, as far as they are known.

    The one pinned nearest upward, else the one installed beside dsmigrate, unless ``release``, that of DeepSpeed, is
    another than the one installed here: the config is for another environment then.
    """
    return {} if folder is None else dict(_frameworks_for(resolved(folder), here=release == unpinned().value))


@functools.cache
def _frameworks_for(folder: Path, *, here: bool) -> tuple[tuple[str, str], ...]:
    pinned = {name: next((pin for _, pin in _upward(folder, name, [])), "") for name in FRAMEWORKS}
    found = ((name, pin or (_installed(name) if here else "")) for name, pin in pinned.items())
    return tuple((name, release) for name, release in found if release)


def installed_in(interpreter: Path) -> str | None:
    """Return the DeepSpeed release that is installed for a Python, from the name of its metadata; nothing is run."""
    for folder in dict.fromkeys((interpreter.parent.parent, resolved(interpreter).parent.parent)):
        for pattern in ("lib/python*/site-packages", "Lib/site-packages", "lib/python*/dist-packages"):
            for found in sorted(folder.glob(f"{pattern}/deepspeed-*.dist-info")):
                version = found.name.removeprefix("deepspeed-").removesuffix(".dist-info").partition("+")[0]
                if _known(version):
                    return version
    return None


def forget() -> None:
    """Look at the files around configs again: some of them have changed."""
    _release_for.cache_clear()
    _frameworks_for.cache_clear()
    _imports.cache_clear()


@functools.cache
def _release_for(folder: Path) -> Guess:
    unread: list[str] = []
    for file, pinned in _upward(folder, DEEPSPEED, unread):
        if _known(pinned):
            return Guess(pinned, "; ".join((say("pinned in {name}", name=file.name), *unread)))
        why = say("the oldest known: {name} pins {pinned}", name=file.name, pinned=pinned)
        return Guess(FIRST, "; ".join((why, *unread)), is_older=True)
    guess = unpinned()
    return Guess(guess.value, "; ".join((guess.why, *unread)))


def unpinned() -> Guess:
    """Return the release of a config around which nothing pins one: what is installed, else the newest known."""
    installed = _installed(DEEPSPEED)
    if installed and _known(installed):
        return Guess(knowledge(installed).version, say("installed here"))
    return Guess(knowledge().version, say("the newest known"))


def pin_rank(name: str) -> int | None:
    """Return how early a file of a folder is asked for a pin, 0 first; None for one that pins nothing.

    ``name`` is relative to the folder, with ``/``: ``requirements/train.txt`` is asked too.
    """
    for rank, pattern in enumerate((*_LOCKING, *_PINNING)):
        if name.count("/") == pattern.count("/") and fnmatch.fnmatchcase(name, pattern):
            return rank
    return None


def pin_in(name: str, text: str) -> str:
    """Return the DeepSpeed release that the text of a file pins, "" for none, and for one that is not known."""
    rank = pin_rank(name)
    if rank is None:
        return ""
    found = (one.search(text) for one in _expressions(DEEPSPEED, locked=rank < len(_LOCKING)))
    return next((match[1] for match in found if match and _known(match[1])), "")


def consumer_for(document: Document, folder: Path | None) -> Guess:
    """Return who reads a config, by what it holds and what the scripts around it import.

    Without "auto" it is DeepSpeed itself. With it, the scripts decide between Accelerate and Transformers; without
    scripts it is Transformers, which fills all that Accelerate does and more.
    """
    autos = "auto" in document.text and any(
        isinstance(node, Scalar) and node.value() == "auto" for _, member, node in document.walk() if member
    )
    if not autos:
        return Guess(Consumer.DEEPSPEED.value, say('there is no "auto" in it'))
    found = _imports(folder) if folder is not None else frozenset()
    if Consumer.TRANSFORMERS in found:
        return Guess(Consumer.TRANSFORMERS.value, say("scripts beside it import transformers"))
    if Consumer.ACCELERATE in found:
        return Guess(Consumer.ACCELERATE.value, say("scripts beside it import accelerate"))
    return Guess(Consumer.TRANSFORMERS.value, say('it holds "auto"'), by_auto=True)


def _upward(folder: Path, package: str, unread: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield what pins a package in a folder and in those around it, as far as the project goes."""
    for directory in (folder, *folder.parents)[:UPWARD]:
        yield from _pins(directory, package, unread)
        if (directory / ".git").exists():
            break


@functools.cache
def _expressions(package: str, *, locked: bool) -> tuple[re.Pattern[str], ...]:
    """Return what finds the release of a package in a lock file, or in a file of requirements."""
    number = r"([0-9]+(?:\.[0-9]+)+)"
    if locked:
        return (
            re.compile(rf'(?im)^name\s*=\s*"{package}"\s*\n(?:.*\n)?version\s*=\s*"{number}"'),
            re.compile(rf'"{package}":\s*\{{[^}}]{{0,4000}}"version":\s*"=={number}"'),
        )
    before = rf"(?im)^[^#\n]*?(?<![\w./-]){package}(?:\[[^\]\n]{{0,200}}\])?"
    return (re.compile(rf"{before}[\"']?\s*(?:~=|={{1,2}})\s*[\"']?{number}"),)


def _pins(directory: Path, package: str, unread: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the files that pin a release, and the release; files that cannot be read are told of in ``unread``."""
    for patterns, locked in ((_LOCKING, True), (_PINNING, False)):
        for pattern in patterns:
            for file in sorted(directory.glob(pattern)):
                try:
                    text = read(file, _LARGEST).decode("utf-8", "replace")
                except MissingFileError:  # a link to nothing
                    continue
                except SourceError as error:
                    unread.append(say("{name} is not read: {problem}", name=file.name, problem=error.message))
                    continue
                for expression in _expressions(package, locked=locked):
                    found = expression.search(text)
                    if found:
                        yield file, found[1]


def _installed(package: str) -> str:
    """Return the version of a package that is installed here, "" for none."""
    if not any(name.lower().startswith(package) for place in sys.path for name in _names(place)):
        return ""
    import importlib.metadata  # noqa: PLC0415 - takes longer than checking ten files

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _names(folder: str) -> list[str]:
    try:
        return [file.name for file in Path(folder or ".").iterdir()]
    except OSError:
        return []


def _known(version: str) -> bool:
    try:
        knowledge(version)
    except ValueError:
        return False
    return True


@functools.cache
def _imports(folder: Path) -> frozenset[Consumer]:
    found: set[Consumer] = set()
    scripts = [script for place in (folder, resolved(folder).parent) for script in sorted(place.glob("*.py"))]
    for script in scripts[:_SCRIPTS]:
        try:
            text = read(script, _LARGEST).decode("utf-8", "replace")
        except SourceError:
            continue
        found |= {consumer for consumer, imported in _IMPORTS.items() if imported.search(text)}
    return frozenset(found)
