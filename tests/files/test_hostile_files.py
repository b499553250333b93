"""Every command, beside and on what a repository can put in a file's place: it says so, ends, and keeps its memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.files.hostile import Ran, few, folder, run

pytestmark = [
    pytest.mark.broad,
    pytest.mark.skipif(not hasattr(os, "wait4") or not Path("/proc/kmsg").exists(), reason="the odd files are Linux's"),
]


@pytest.mark.parametrize(
    ("kind", "names", "arguments"),
    [pytest.param(kind, names, arguments, id=f"{kind}: {name}") for kind, name, names, arguments in few()],
)
def test_an_odd_file_ends_no_command(tmp_path: Path, kind: str, names: tuple[str, ...], arguments: list[str]) -> None:
    ran: Ran = run(arguments, folder(tmp_path, kind, names))
    assert ran.code in {0, 1, 2}, ran.output
    assert "Traceback" not in ran.output
    assert not re.search(r"Missing option|No such option", ran.output), "a usage is tried, not a file"
    assert ran.mebibytes < 300
