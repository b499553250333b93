"""Rewrite the ``after`` side of every example from what the codemod makes of its ``before`` side.

    PYTHONPATH=server:. python tests/codemod/update_examples.py [MG101 …]

Run it by hand after a change of the codemod, then read the diff of ``server/dsmigrate/codemod/examples`` line by line:
the examples are the documentation, so they have to train as before *and* look as a person would write it. Refusals have
no ``after`` side. Says where an example does not give its code any more.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.codemod.checks import options_of
from tests.support.migrating import migrate_source

EXAMPLES = Path(__file__).parents[2] / "server" / "dsmigrate" / "codemod" / "examples"


def main(codes: list[str]) -> None:
    """Update the examples of these codes, or of all."""
    for before in sorted(EXAMPLES.glob("*.before.txt")):
        code = before.name.partition(".")[0]
        if codes and code not in codes:
            continue
        after = before.with_name(f"{code}.after.txt")
        old = after.read_text(encoding="utf-8") if after.exists() else None
        source = before.read_bytes()
        result = migrate_source(source, path="train.py", options=options_of(source.decode()))
        new = None if result.new_source is None else result.new_source.decode()
        said = {change.code for change in result.changes}
        if code not in said:
            print(code, "is not given:", result.status.value, *sorted(said))
        if new == old:
            continue
        print(code, "removed" if new is None else "written")
        if new is None:
            after.unlink()
        else:
            after.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
