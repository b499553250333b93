"""``dsmigrate explain``: a key of the config, a type, a code, or a message of an error, in the terminal."""

from __future__ import annotations

import json

import click

from dsmigrate.cli import terminal
from dsmigrate.cli.language import speak
from dsmigrate.explain import NothingToExplainError, Overview, find, markdown
from dsmigrate.explain import json as explain_json
from dsmigrate.files.reading import STDIN, read_stdin
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import knowledge
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release


@click.command("explain", short_help="Print what a key, an optimizer or scheduler type, a code or an error means.")
@click.argument("words", nargs=-1, metavar="[KEY|TYPE|CODE|MESSAGE|-]")
@click.option("--target-version", metavar="TEXT", help="DeepSpeed release to describe; default the newest known.")
@click.option("--lang", metavar="TAG", help="Language of messages: en or zh-CN.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(words: tuple[str, ...], target_version: str | None, form: str, lang: str | None) -> int:
    """Print what a key of ds_config.json does, its type, default and history, and who fills "auto".

    KEY is a path such as zero_optimization.stage. TYPE is an optimizer or scheduler (AdamW, WarmupLR) or one of its
    parameters (AdamW.lr). CODE is a code of a report (MG101, DS401, DF301, CV101). Without any of them, lists the
    sections; `codes` lists the codes.

    MESSAGE is an error or a warning, one line or a whole traceback in quotes: what causes it and what to do. `-` reads
    it from standard input.
    """
    try:
        speak(lang)
        subject = _read() if words == (STDIN,) else " ".join(words) or None
        version = check_release(target_version, "--target-version") if target_version else None
        known = knowledge(version)
        found = find(subject, known)
    except (SettingsError, NothingToExplainError, SourceError) as error:
        raise click.UsageError(str(error)) from None
    if form == "json":
        terminal.write(json.dumps(explain_json.document(found, known), indent=2, default=str) + "\n")
    elif form == "markdown":
        terminal.write_visible(markdown.text(found, known))
    elif isinstance(found, Overview) and found.codes:
        terminal.show_codes(found)
    else:
        terminal.show_markdown(markdown.text(found, known))
    return 0


def _read() -> str:
    return read_stdin().decode("utf-8", "replace")
