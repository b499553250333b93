"""The page of what ``--target-version`` changes."""

from __future__ import annotations

from dsmigrate.codemod.targets import differences
from dsmigrate.docs.pages import MARK

_TITLE = "# What `--target-version` changes"
_INTRODUCTION = (
    "A conversion is made for one DeepSpeed release: the newest, unless `--target-version` or the setting of that name "
    "says another. These are the places where the result differs; the rest is the same for every release from 0.12 on. "
    "`engine.backward` and `engine.step` are always written: every release has them."
)
_TRIED = (
    "Tried on two CPU processes with torch 2.13, the losses against those of the original: releases from 0.14.4 on. "
    "Older ones do not run there: up to 0.14.0 DeepSpeed trains on a CPU only with Intel's extension of torch, and up "
    "to 0.14.3 it imports what later releases of torch and numpy do not have."
)


def page() -> str:
    """Return the text of ``docs/target-versions.md``."""
    rows = []
    for entry in differences().values():
        span = f"{entry.since} to {entry.until}" if entry.until else f"from {entry.since} on"
        rows.append(f"| {entry.title} | {span} | {entry.inside} | {entry.outside} |")
    sources = [f"- {entry.title}: {entry.source}" for entry in differences().values()]
    table = "\n".join(["| what | releases | for these | for all others |", "|---|---|---|---|", *rows])
    return "\n\n".join([MARK_OF_FACTS, _TITLE, _INTRODUCTION, table, _TRIED, "## Sources", "\n".join(sources)]) + "\n"


MARK_OF_FACTS = MARK.replace("the idea in the source", "schemas/deepspeed/targets.json")
