"""Known bugs in the sources of releases: whether the signs of each are in those releases that it names, and no others.

A sign is a file below ``deepspeed`` with texts that it has and texts that it lacks. The signs of a bug are
alternatives; one that is a list wants all of its parts.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsmigrate.derivation.archive import PACKAGE
from dsmigrate.derivation.errors import DerivationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Verified:
    """A bug with the releases that it names and those whose sources have its signs."""

    name: str
    named: tuple[str, ...]
    signed: tuple[str, ...]
    ran: bool

    @property
    def holds(self) -> bool:
        """Whether both are the same."""
        return self.named == self.signed


def read(path: Path) -> dict[str, Table]:
    """Return the bugs by name; raises DerivationError for a file that is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise DerivationError(f"{path}: {error}") from None


def verify(bugs: Mapping[str, Table], releases: Sequence[str], roots: Mapping[str, Path]) -> list[Verified]:
    """Return each bug as the sources have it: of ``releases``, oldest first, those that are unpacked at ``roots``.

    Raises DerivationError for a bug of a release that is not among ``releases``.
    """
    texts = _Texts({release: root / PACKAGE for release, root in roots.items()})
    return [_verified(name, bug, releases, texts) for name, bug in bugs.items()]


def verify_in_wheels(bugs: Mapping[str, Table], packages: Mapping[str, Mapping[str, Path]]) -> list[Verified]:
    """Return what frameworks.toml says as the wheels have it: ``packages`` gives each package's releases, oldest first.

    Raises DerivationError as ``verify`` does.
    """
    texts = {
        name: _Texts({release: zipfile.Path(wheel) for release, wheel in wheels.items()})
        for name, wheels in packages.items()
    }
    return [_verified(name, bug, list(packages[bug["package"]]), texts[bug["package"]]) for name, bug in bugs.items()]


def table(found: Sequence[Verified]) -> str:
    """Return a line per bug, and how many hold."""
    width = max((len(one.name) for one in found), default=0)
    lines = [
        f"{one.name:{width}}  {_span(one.named):18}{'ran' if one.ran else '':5}{'ok' if one.holds else _spans(one)}"
        for one in found
    ]
    wrong = sum(not one.holds for one in found)
    ran = sum(one.ran for one in found)
    return "\n".join([*lines, f"{len(found)} bugs, {len(found) - wrong} as the sources say, {ran} also by running"])


class _Texts:
    """The files of releases, each read once."""

    def __init__(self, roots: Mapping[str, Path | zipfile.Path]) -> None:
        self._roots = roots
        self._read: dict[tuple[str, str], str | None] = {}

    def __contains__(self, release: str) -> bool:
        return release in self._roots

    def text(self, release: str, file: str) -> str | None:
        if (release, file) not in self._read:
            path = self._roots[release] / file
            self._read[release, file] = path.read_text(encoding="utf-8") if path.is_file() else None
        return self._read[release, file]


def _verified(name: str, bug: Table, releases: Sequence[str], texts: _Texts) -> Verified:
    first, last = bug["first"], bug.get("last", releases[-1])
    if first not in releases or last not in releases:
        raise DerivationError(f"{name}: {first} to {last} are not both among the releases")
    there = [release for release in releases if release in texts]
    named = [release for release in releases[releases.index(first) : releases.index(last) + 1] if release in texts]
    signed = [release for release in there if any(_is_signed(sign, release, texts) for sign in bug["signs"])]
    return Verified(name, tuple(named), tuple(signed), "ran" in bug)


def _is_signed(sign: Table | list[Table], release: str, texts: _Texts) -> bool:
    every = sign if isinstance(sign, list) else [sign]
    return all(_is_there(one, texts.text(release, one["file"])) for one in every)


def _is_there(sign: Table, text: str | None) -> bool:
    """Return whether a file is there and as the sign says."""
    if text is None:
        return False
    return all(part in text for part in sign.get("has", ())) and not any(part in text for part in sign.get("lacks", ()))


def _span(releases: Sequence[str]) -> str:
    if not releases:
        return "none of these"
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _spans(one: Verified) -> str:
    """Return where the signs are instead."""
    if not one.signed:
        return "signs in no release"
    besides = [release for release in one.signed if release not in one.named]
    lacking = [release for release in one.named if release not in one.signed]
    return f"signs also in {', '.join(besides) or 'no other'}, not in {', '.join(lacking) or 'none of these'}"
