"""The entry of the child process: ``main(root)`` writes the facts of the release at ``root`` to standard output."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from dsmigrate.derivation.child import entries
from dsmigrate.derivation.child.facts import all_facts, engine_parameters
from dsmigrate.derivation.child.importer import install
from dsmigrate.derivation.child.record import Record

FORBIDDEN = ("socket.", "subprocess.", "shutil.", "webbrowser.", "urllib.", "ftplib.", "smtplib.")
FORBIDDEN_CALLS = frozenset(
    f"os.{name}"
    for name in (
        "system",
        "exec",
        "fork",
        "forkpty",
        "posix_spawn",
        "spawn",
        "startfile",
        "kill",
        "killpg",
        "remove",
        "rename",
        "rmdir",
        "mkdir",
        "link",
        "symlink",
        "truncate",
        "chmod",
        "chown",
    )
)


def main(root: Path) -> None:
    """Derive the release and write one JSON object; whatever the release itself prints goes to standard error.

    On failure the last line of standard error names the module of the release and what went wrong.
    """
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(20_000)
    try:
        found = derived(root)
    except Exception as error:  # noqa: BLE001 - the code of a release can raise anything; it is told, not hidden
        sys.stderr.write(f"\n{failure(error, root)}\n")
        sys.exit(1)
    json.dump(found, pipe)
    pipe.close()


def derived(root: Path) -> dict[str, Any]:
    """Return ``keys``, and ``engine``: what the engine takes out of ``optimizer.params``."""
    install(root)
    sys.addaudithook(refuse)
    record = Record(root)
    entries.walk_all(record)
    return {"keys": all_facts(record), "engine": engine_parameters(record)}


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise for every use of the network, of other processes and of files that are written."""
    writing = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    if writing or event in FORBIDDEN_CALLS or event.startswith(FORBIDDEN):
        raise PermissionError(f"the code of a release may not use {event}")


def failure(error: BaseException, root: Path) -> str:
    """Return one line: the error, and the innermost file and line of the release that led to it."""
    told = f"{type(error).__name__}: {' '.join(str(error).split())}"
    while error.__cause__ is not None:
        error = error.__cause__
    inside = [
        f" ({Path(frame.filename).relative_to(root).as_posix()}, line {frame.lineno})"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(root)
    ]
    return told + (inside[-1] if inside else "")
