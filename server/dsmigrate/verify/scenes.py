"""Makes the folders in which the scripts run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsmigrate.files.paths import resolved
from dsmigrate.verify.conversion import convert
from dsmigrate.verify.request import Request
from dsmigrate.verify.shadow import lay_over, shadow
from dsmigrate.verify.trial import Scene


@dataclass(slots=True)
class Scenes:
    """Makes scenes below ``place``, each in a copy of its own; with ``request.here`` in the present folder."""

    request: Request
    place: Path
    _count: int = 0

    @property
    def root(self) -> Path:
        """The folder that is copied: the present one, or that of a script that lies elsewhere."""
        here, folder = resolved(Path.cwd()), resolved(self.request.original).parent
        return here if folder.is_relative_to(here) else folder

    def original(self) -> Scene:
        """Return a scene with the original."""
        if self.request.here:
            return Scene(Path.cwd(), str(self.request.original), Path.cwd(), is_copy=False)
        return Scene(self._copy(), self._script(), self.root)

    def converted(self, stage: int | None) -> tuple[Scene, tuple[str, ...]]:
        """Return a scene with the conversion, and what it left for a person.

        A converted script in another folder is laid over the original's, with everything that lies beside it: modules
        that were not changed stay those of the original.
        """
        converted = self.request.converted
        if converted is not None and self.request.here:
            return Scene(Path.cwd(), str(converted), Path.cwd(), is_copy=False), ()
        folder = self._copy()
        script = folder / self._script()
        if converted is None:
            asked = {**self.request.conversion, **({} if stage is None else {"zero-stage": stage})}
            left = convert(self.request.original, self.root, folder, asked)
            return Scene(folder, self._script(), self.root), left
        beside = resolved(converted).parent
        if beside != resolved(self.request.original).parent:
            lay_over(beside, script.parent)
        return Scene(folder, str((script.parent / converted.name).relative_to(folder)), self.root), ()

    def _script(self) -> str:
        return str(resolved(self.request.original).relative_to(self.root))

    def _copy(self) -> Path:
        self._count += 1
        return shadow(self.root, self.place / f"work{self._count:02d}")
