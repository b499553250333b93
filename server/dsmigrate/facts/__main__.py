"""``python -m dsmigrate.facts [--check]``: write the generated facts and schemas, or say what is stale.

It runs at the root of a checkout.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dsmigrate.facts.catalogue import compiled
from dsmigrate.facts.generate import generated
from dsmigrate.facts.sources import FactsError, read
from dsmigrate.facts.translated import accept

FOLDER = Path("schemas") / "deepspeed"
_GENERATED = ("compiled/*.json", "compiled/*/*.json", "*.schema.json", "versions/*.schema.json")
_CATALOGUES = "locale/compiled/*.json"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--check", is_flag=True, help="Write nothing, exit with 1 if something is stale.")
@click.option("--accept-translations", is_flag=True, help="Take every translation for one of the English as it is now.")
def main(*, check: bool, accept_translations: bool) -> None:
    """Write what is generated from keys/*.toml and derived/*.json under schemas/deepspeed."""
    try:
        if accept_translations:
            for path in accept(FOLDER, read(FOLDER)):
                click.echo(f"wrote {path}")
        wrong = write(FOLDER, check=check)
    except FactsError as error:
        raise click.ClickException(str(error)) from None
    for line in wrong:
        click.echo(line)
    sys.exit(1 if check and wrong else 0)


def write(folder: Path, *, check: bool = False) -> list[str]:
    """Bring the generated files of ``folder`` up to date and return what was done, or with ``check`` what would be."""
    wanted = generated(folder) | compiled(folder.parent)
    present = {path for pattern in _GENERATED for path in folder.glob(pattern)}
    present |= set(folder.parent.glob(_CATALOGUES))
    said = []
    for path in sorted(present | wanted.keys()):
        text = wanted.get(path)
        if text is not None and path in present and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            said.append(f"{path} is stale: run python -m dsmigrate.facts")
        elif text is None:
            path.unlink()
            said.append(f"removed {path}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            said.append(f"wrote {path}")
    return said


if __name__ == "__main__":
    main()
