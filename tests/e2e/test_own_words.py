"""The documentation is our own: it shares no run of eight words with DeepSpeed's code, docstrings or comments."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.facts.sources import tomllib

from .launching import torch_python

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("facts")]

LENGTH = 8
KEYS = Path(__file__).resolve().parents[2] / "schemas" / "deepspeed" / "keys"
_WORD = re.compile(r"[a-z0-9_]+")


def runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return zip(*(words[start:] for start in range(LENGTH)), strict=False)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def prose() -> Iterator[tuple[str, str]]:
    for path in sorted(KEYS.glob("*.toml")):
        for key, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            written = {name: value for name, value in table.items() if name not in {"source", "related", "params"}}
            for text in texts(written):
                yield f"{path.stem}: {key}", text


def test_no_run_of_eight_words_is_deepspeeds() -> None:
    find = "import importlib.util as u; print(u.find_spec('deepspeed').submodule_search_locations[0])"
    package = Path(subprocess.check_output([torch_python(), "-c", find], text=True).strip())
    files = list(package.rglob("*.py"))
    theirs = {hash(run) for path in files for run in runs(path.read_text(encoding="utf-8", errors="replace"))}
    written = list(prose())
    copied = {f"{key}: {' '.join(run)}" for key, text in written for run in runs(text) if hash(run) in theirs}
    print(f"texts: {len(written)}, words: {sum(len(_WORD.findall(text)) for _, text in written)}, files: {len(files)}")
    assert sorted(copied) == []
    assert len(files) > 300
