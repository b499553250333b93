"""``dsmigrate schema``: the JSON Schema of the config of a release."""

from __future__ import annotations

import json

import click

from dsmigrate.cli import terminal
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.schemas_location import schema_file
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release


@click.command("schema", short_help="Print the JSON Schema of ds_config.json for a DeepSpeed release.")
@click.option("--target-version", metavar="VERSION", help="DeepSpeed release; default the newest known.")
@click.option(
    "--consumer",
    type=click.Choice([one.value for one in Consumer]),
    help='Who reads the config: "auto" passes where it is filled; default where anybody fills it.',
)
def command(target_version: str | None, consumer: str | None) -> int:
    """Print the JSON Schema (draft-07) of the config of a DeepSpeed release.

    It says what DeepSpeed accepts as far as a schema can; `dsmigrate check` says more.
    """
    from dsmigrate.facts.generate import read_all  # noqa: PLC0415 - what no other command needs
    from dsmigrate.facts.json_schema import of_release  # noqa: PLC0415

    try:
        version = knowledge(check_release(target_version, "--target-version") if target_version else None).version
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    sources, found, kinds = read_all(schema_file("deepspeed/releases.json").parent)
    schema = of_release(sources, found, kinds, version, Consumer(consumer) if consumer else None)
    terminal.write(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
    return 0
