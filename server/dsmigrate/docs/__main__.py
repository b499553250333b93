"""``python -m dsmigrate.docs [--check]``: write what is generated from the source, or say what is stale.

It runs at the root of a checkout: the pages of the codes are in docs/codes, those of the keys of the config in
docs/keys, those of the rules in docs/rules, those of conversions in docs/conversions, those of messages in
docs/messages, what people report is in docs/problems.md, what depends on the release in docs/target-versions.md and
docs/known-bugs.md, and README.md shows a patch; it and docs/diff.md show what the diff says.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dsmigrate.convert.explained import every_conversion
from dsmigrate.diff.registry import every_explanation
from dsmigrate.docs import changes, comparison, conversions, keys, known_bugs, messages, problems, rules, targets
from dsmigrate.docs.pages import pages
from dsmigrate.docs.readme import refreshed
from dsmigrate.knowledge import knowledge
from dsmigrate.messages import entries
from dsmigrate.migration.catalogue import every_idea
from dsmigrate.rules import every_rule

CODES = Path("docs") / "codes"
KEYS = Path("docs") / "keys"
RULES = Path("docs") / "rules"
CHANGES = Path("docs") / "changes"
CONVERSIONS = Path("docs") / "conversions"
MESSAGES = Path("docs") / "messages"
PROBLEMS = Path("docs") / "problems.md"
TARGETS = Path("docs") / "target-versions.md"
README = Path("README.md")
DIFF = Path("docs") / "diff.md"
BUGS = Path("docs") / known_bugs.PAGE


def main(arguments: list[str] | None = None, root: Path = Path()) -> int:
    """Write or check the pages of the checkout at ``root``; returns 1 when ``--check`` finds a stale one."""
    parser = argparse.ArgumentParser(
        prog="python -m dsmigrate.docs", description="Generate what docs show of the code."
    )
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if something is stale")
    check = parser.parse_args(arguments).check
    wanted = generated(root)
    wrong = stale(root, wanted)
    for path in wrong:
        if check:
            print(f"{path} is stale: run python -m dsmigrate.docs")
        elif path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8", newline="\n")
            print(f"wrote {path}")
        else:
            path.unlink()
            print(f"removed {path}")
    return 1 if check and wrong else 0


def generated(root: Path) -> dict[Path, str]:
    """Return the text of every file that is generated, wholly or in part, by its path."""
    readme, diff = root / README, root / DIFF
    found = {root / CODES / name: text for name, text in pages(every_idea()).items()}
    found |= {root / KEYS / name: text for name, text in keys.pages(knowledge()).items()}
    found |= {root / RULES / name: text for name, text in rules.pages(every_rule()).items()}
    found[root / PROBLEMS] = problems.page(every_rule())
    found[root / TARGETS] = targets.page()
    found[root / BUGS] = known_bugs.page()
    found |= {root / CHANGES / name: text for name, text in changes.pages(every_explanation()).items()}
    found |= {root / CONVERSIONS / name: text for name, text in conversions.pages(every_conversion()).items()}
    found |= {root / MESSAGES / name: text for name, text in messages.pages(entries()).items()}
    if readme.is_file():
        found[readme] = comparison.refreshed(refreshed(readme.read_text(encoding="utf-8")))
    if diff.is_file():
        found[diff] = comparison.refreshed(diff.read_text(encoding="utf-8"))
    return found


def stale(root: Path, wanted: dict[Path, str]) -> list[Path]:
    """Return the files that are missing, differ from what is wanted, or belong to nothing any more."""
    there = [
        path for folder in (CODES, KEYS, RULES, CHANGES, CONVERSIONS, MESSAGES) for path in (root / folder).glob("*.md")
    ]
    present = {path: path.read_text(encoding="utf-8") for path in (*there, *wanted) if path.is_file()}
    return sorted(path for path in wanted.keys() | present.keys() if wanted.get(path) != present.get(path))


if __name__ == "__main__":
    sys.exit(main())
