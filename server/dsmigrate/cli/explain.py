"""``dsmigrate explain``: the text behind a code of the report."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from dsmigrate.cli import terminal
from dsmigrate.codemod.model import Idea
from dsmigrate.docs.pages import page
from dsmigrate.migration.catalogue import every_idea


@click.command("explain", short_help="Print what a migration code stands for.")
@click.argument("code", required=False, metavar="[CODE]")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(code: str | None, form: str) -> int:
    """Print what a migration code stands for, why, and an example before and after.

    Without a code, lists every code.
    """
    ideas = every_idea()
    if code is None:
        chosen: Sequence[Idea] = ideas
    else:
        chosen = [_find(code, ideas)]
    if form == "json":
        document = [asdict(idea) for idea in chosen]
        terminal.write_bytes((json.dumps(document if code is None else document[0], indent=2) + "\n").encode())
    elif form == "markdown":
        terminal.write_bytes("\n".join(page(idea) for idea in chosen).encode())
    elif code is None:
        terminal.show_codes(chosen)
    else:
        terminal.show_idea(chosen[0])
    return 0


def _find(code: str, ideas: Sequence[Idea]) -> Idea:
    asked = code.strip().upper()
    asked = f"MG{asked}" if asked.isdigit() else asked
    codes = {idea.code: idea for idea in ideas}
    if asked in codes:
        return codes[asked]
    near = difflib.get_close_matches(asked, codes, n=3, cutoff=0.6)
    titles = [f"{idea.code} ({idea.title})" for idea in ideas if code.lower() in f"{idea.title} {idea.summary}".lower()]
    hints = [f"{name} ({codes[name].title})" for name in near] or titles[:5]
    hint = f"; near: {', '.join(hints)}" if hints else "; `dsmigrate explain` lists every code"
    raise click.UsageError(f"there is no code {code}{hint}")
