"""The codes of files that do not get through the codemod."""

from __future__ import annotations

from dsmigrate.codemod.model import Idea, Kind

UNREADABLE = "MG900"
"""The codemod's own code for content it cannot read; here for paths that lead to none."""

INTERNAL = "MG998"

CONFLICT = "MG914"

IDEAS = (
    Idea(
        code=INTERNAL,
        title="dsmigrate failed on this file",
        summary="An error of dsmigrate itself; the file is left as it is and the other files are not affected.",
        why=(
            "No input should lead here. The message names the exception and the place in dsmigrate; the file, or the "
            "part of it that still fails, makes a good report."
        ),
        source="dsmigrate",
        kind=Kind.REFUSED,
    ),
    Idea(
        code=CONFLICT,
        title="Several scripts need a module in different forms",
        summary="A module that the conversion would change is used by another script, which would stop working.",
        why=(
            "A helper that several entry scripts use is converted only if all of them keep working: they are converted "
            "in one run, and the module comes out the same for each. Where a script is not among those given, or needs "
            "another text, nothing of the set is written. Name all scripts in one command, or separate the helper."
        ),
        source="dsmigrate",
        kind=Kind.REFUSED,
    ),
)
