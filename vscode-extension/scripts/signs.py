"""Writes ``src/client/signs.json``: by which names and words the extension knows that the server has work to do.

Run with the package importable, after its recognition changed: ``PYTHONPATH=../server python scripts/signs.py``;
``--check`` only compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dsmigrate.checking.recognise import _ACCELERATE, _NAME, SUFFIXES
from dsmigrate.editing.python.conversion import _IMPORTED
from dsmigrate.editing.python.literals import _WORTH_A_LOOK
from dsmigrate.language_server.recognition import _TELLING

FILE = Path(__file__).parent.parent / "src" / "client" / "signs.json"


def signs() -> str:
    """Return the file's text: patterns that Python and JavaScript both understand."""
    found = {
        "generated": "scripts/signs.py",
        "endings": sorted(SUFFIXES),
        "name": _NAME.pattern,
        "words": _TELLING.pattern,
        "yaml": _ACCELERATE.pattern.decode().removeprefix("(?m)"),
        "script": f"{_IMPORTED.pattern}|{_WORTH_A_LOOK.pattern.removeprefix('(?i)')}",
    }
    return json.dumps(found, indent=2) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(FILE.read_text("utf-8") != signs())
    FILE.write_text(signs(), "utf-8")
