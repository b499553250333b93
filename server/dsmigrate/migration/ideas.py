"""The codes of files that do not get through the codemod."""

from __future__ import annotations

from dsmigrate.codemod.model import Idea, Kind

UNREADABLE = "MG900"

INTERNAL = "MG998"

CONFLICT = "MG914"

USED_AS_FILE = "MG637"

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
        code=UNREADABLE,
        title="The file cannot be read",
        summary="Binary or undecodable content, invalid Python (Python 2 included), or nesting no parser survives.",
        why="The message names the line. The file is left as it is.",
        source="Python's own parser",
        kind=Kind.REFUSED,
    ),
)
