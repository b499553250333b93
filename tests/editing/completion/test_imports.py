"""Completion costs little before it is first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = ("click", "rich", "libcst", "jsonschema", "deepdiff", "hjson", "tomllib", "tomli", "pygls", "lsprotocol")
PROGRAM = """
import sys
from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.completion import complete, documentation
for text in ("", "{}", '{"optimizer": {"type": "AdamW", "params": {}}}'):
    for offset in range(len(text) + 1):
        for item in complete(View(parse(text)), offset, snippets=True):
            documentation("0.19.8", "deepspeed", item.data)
print(*sorted(sys.modules))
"""


def test_nothing_heavy_and_no_rule_is_imported() -> None:
    server = Path(__file__).resolve().parents[3] / "server"
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(server)}
    )
    loaded = set(child.stdout.split())
    assert loaded & set(HEAVY) == set()
    assert [name for name in loaded if name.startswith("dsmigrate.facts")] == []
    rules = [name for name in loaded if name.startswith("dsmigrate.rules.") and name.count(".") > 2]
    assert {name.rpartition(".")[2] for name in rules} <= {"_shared"}
