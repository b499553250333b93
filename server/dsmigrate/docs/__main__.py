"""``python -m dsmigrate.docs [--check] [FOLDER]``: write the generated pages, or say which are stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dsmigrate.docs.pages import pages
from dsmigrate.migration.catalogue import every_idea

FOLDER = Path("docs") / "codes"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; returns 1 when ``--check`` finds a stale one."""
    parser = argparse.ArgumentParser(prog="python -m dsmigrate.docs", description="Generate the pages of the MG codes.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help=f"default: {FOLDER}")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a page is stale")
    options = parser.parse_args(arguments)
    wrong = stale(options.folder)
    if options.check:
        for name in wrong:
            print(f"{options.folder / name} is stale: run python -m dsmigrate.docs")
        return 1 if wrong else 0
    options.folder.mkdir(parents=True, exist_ok=True)
    fresh = pages(every_idea())
    for name in wrong:
        if name in fresh:
            (options.folder / name).write_text(fresh[name], encoding="utf-8", newline="\n")
        else:
            (options.folder / name).unlink()
        print(f"{'wrote' if name in fresh else 'removed'} {options.folder / name}")
    return 0


def stale(folder: Path) -> list[str]:
    """Return the names of the pages in ``folder`` that are missing, differ, or belong to no code any more."""
    fresh = pages(every_idea())
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in fresh.keys() | present.keys() if fresh.get(name) != present.get(name))


if __name__ == "__main__":
    sys.exit(main())
