"""The patch at the top of the README, made from the script above it."""

from __future__ import annotations

import re
from pathlib import Path

from dsmigrate.codemod.model import Options
from dsmigrate.files.diff import unified
from dsmigrate.migration.configs import render
from dsmigrate.migration.job import Job, run

SCRIPT = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATCH = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def refreshed(readme: str) -> str:
    """Return the README with its first ``diff`` block made anew from its first ``python`` block.

    Raises ValueError when a block is missing or the script is not converted.
    """
    script = SCRIPT.search(readme)
    patch = PATCH.search(readme)
    if script is None or patch is None:
        raise ValueError("the README has no python block, or no diff block, to make anew")
    result = run(Job(Path("train.py"), Path(), Options(), script[1].encode())).result
    if result.config is None:
        raise ValueError("the script of the README is not converted")
    made = result.diff + unified(None, render(result.config), "ds_config.json")
    return readme[: patch.start(1)] + made + readme[patch.end(1) :]
