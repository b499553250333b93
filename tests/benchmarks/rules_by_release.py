"""What every rule and every fix says for every minor release, beside what that release itself says.

    python -m tests.benchmarks.rules_by_release [--releases V ...] [--rules DS4 ...] [--older-python PATH] [--unjudged]

Every example of a rule is checked, and mended, for the release, and its texts are given to the config class, the engine
and a first step of that release's own code (fetched from the package index). ``DSMIGRATE_TORCH_PYTHON`` names the
interpreter for releases from 0.14.4 on, ``--older-python`` one with a torch of their time for those before
(docs/target-versions.md). Printed are every disagreement, and a table of rules and releases: ``R`` is judged by
running (refused, or failing in a step, as the rule says), ``s``: the release takes it, and the code that the rule names
is that of the newest release, ``l``: it is another one, and has the lines of ``tests/rules/agreement/signs.toml``,
``d``: it is another one, and nobody has read it, ``-``: the rule says nothing there and nothing is refused, ``?``: not
judged, ``x``: a disagreement. The command exits with 1 when there is one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

from dsmigrate.derivation.sources import Sources, default_cache, default_index
from dsmigrate.knowledge import knowledge
from dsmigrate.knowledge.store import index
from dsmigrate.knowledge.versions import order
from dsmigrate.rules import Rule, every_rule
from tests.rules.agreement import history

OLDER = "0.14.4"
"""Releases before import what later releases of torch do not have."""


def of_release(release: str, root: Path, codes: tuple[str, ...]) -> list[history.Told]:
    """Return what comes of the examples in a release that is unpacked at ``root``."""
    os.environ |= {"DSMIGRATE_E2E_RELEASE": release, "DSMIGRATE_E2E_SOURCES": str(root)}
    return history.tell(list(history.examples(release, codes)))


def main(argv: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", nargs="*", help="[the last one of each minor version]")
    parser.add_argument("--rules", nargs="*", default=["DS"], help="codes, or beginnings of them")
    parser.add_argument(
        "--older-python", help="an interpreter for releases before 0.14.4, which are left out without it"
    )
    parser.add_argument("--unjudged", action="store_true", help="print why examples cannot be judged")
    args = parser.parse_args(argv)
    sources, codes = Sources(default_cache(), default_index()), tuple(args.rules)
    newest, usual = sources.root(knowledge().version), os.environ.get("DSMIGRATE_TORCH_PYTHON", sys.executable)
    asked = args.releases or history.minors(index()["releases"])
    read = history.signed({release: sources.root(release) for release in asked})
    table: dict[str, dict[str, str]] = defaultdict(dict)
    wrong = 0
    for release in asked:
        python = args.older_python if order(release) < order(OLDER) else usual
        if python is None:
            continue
        os.environ["DSMIGRATE_TORCH_PYTHON"] = python
        root = sources.root(release)
        told = of_release(release, root, codes)
        by_rule: dict[str, list[history.Told]] = defaultdict(list)
        for one in told:
            by_rule[one.asked.rule.code].append(one)
            if one.outcome in history.WRONG:
                wrong += 1
                print(one, flush=True)
            elif args.unjudged and one.outcome is history.Outcome.UNJUDGED:
                print(f"{one.asked.case.name} in {release}: {one.answer.reason or one.answer.error}")
        for rule in every_rule():
            if rule.code.startswith(codes):
                same, lines = history.is_same(rule, root, newest), release in read.get(rule.code, ())
                table[rule.code][release] = history.cell(by_rule[rule.code], same, lines=lines)
        counts = Counter(one.outcome for one in told)
        print(f"{release}: " + ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items()), flush=True)
    show([rule for rule in every_rule() if rule.code in table], table)
    return min(wrong, 1)


def show(rules: list[Rule], table: dict[str, dict[str, str]]) -> None:
    """Print the table and how often each mark is in it."""
    columns = list(dict.fromkeys(release for row in table.values() for release in row))
    print(f"\n{'':40} " + " ".join(f"{release:>6}" for release in columns))
    for rule in rules:
        print(f"{rule.title[:40]:40} " + " ".join(f"{table[rule.code].get(release, ''):>6}" for release in columns))
    print(dict(Counter(mark for row in table.values() for mark in row.values())))


if __name__ == "__main__":
    sys.exit(main())
