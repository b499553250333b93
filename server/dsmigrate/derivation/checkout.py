"""The files of a checkout that this package reads and writes: releases.json, derived/ and keys/."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.derivation import store
from dsmigrate.derivation.documentation import documented
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.release import Release
from dsmigrate.derivation.versions import in_order


@dataclass(frozen=True)
class Checkout:
    """``schemas/deepspeed`` of a checkout."""

    folder: Path

    @property
    def releases_file(self) -> Path:
        """The list of all releases."""
        return self.folder / "releases.json"

    @property
    def derived(self) -> Path:
        """The folder of the derived facts."""
        return self.folder / "derived"

    def releases(self) -> list[str]:
        """Return the releases that are known, oldest first; raises DerivationError outside a checkout."""
        try:
            return in_order(json.loads(self.releases_file.read_text(encoding="utf-8"))["releases"])
        except (OSError, ValueError, KeyError) as error:
            raise DerivationError(f"{self.releases_file}: {error}; run this at the root of a checkout") from error

    def add_release(self, release: str) -> None:
        """Write the release into releases.json, in its place."""
        content = json.loads(self.releases_file.read_text(encoding="utf-8"))
        content["releases"] = in_order({*content["releases"], release})
        self.releases_file.write_text(
            json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
        )

    def stored(self, releases: Sequence[str]) -> dict[str, Release]:
        """Return the stored facts of these releases."""
        return store.read(self.derived, releases)

    def write(self, facts: Mapping[str, Release]) -> list[str]:
        """Write the facts of all releases and return the names of the files that changed."""
        ordered = {release: facts[release] for release in in_order(facts)}
        return store.write(self.derived, store.texts(ordered))

    def documented(self) -> set[str]:
        """Return the paths that have documentation."""
        return documented(self.folder / "keys")
