"""``dsmigrate server``: the language server, for editors."""

from __future__ import annotations

import click

from dsmigrate.language_server.main import main


@click.command(
    "server",
    short_help="Start the language server.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Start the language server; its options are its own."""
    try:
        main(arguments, "dsmigrate server")
    except SystemExit as finished:
        return finished.code if isinstance(finished.code, int) else 1
