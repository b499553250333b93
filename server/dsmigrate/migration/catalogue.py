"""Every MG code there is: those of the codemod's idioms and those of files that never reach them."""

from __future__ import annotations

from dsmigrate.codemod.catalogue import ideas, with_example
from dsmigrate.codemod.model import Idea
from dsmigrate.launchers.ideas import IDEAS as LAUNCHERS
from dsmigrate.migration.ideas import IDEAS


def every_idea() -> tuple[Idea, ...]:
    """Return the catalogue entries, sorted by code; each code once."""
    found = {idea.code: idea for idea in (*map(with_example, IDEAS), *LAUNCHERS, *ideas())}
    return tuple(found[code] for code in sorted(found))
