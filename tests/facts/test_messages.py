from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.derivation.messages import read_of
from dsmigrate.facts.messages import compiled
from dsmigrate.facts.sources import FactsError, read_toml

SAID = {
    "releases": ["0.9.0", "0.10.0"],
    "texts": {
        "the stage {} is wrong": ["deepspeed/a.py", "ValueError", [["0.9.0", "0.10.0"]]],
        "the stage {} is bad": ["deepspeed/a.py", "ValueError", [["0.9.0", "0.9.0"]]],
    },
}
ENTRY = 'package = "deepspeed"\ncause = "Why."\ncure = "Do."\n'


FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "deepspeed"


def joined(tmp_path: Path, table: str) -> dict[str, Any]:
    (tmp_path / "messages").mkdir()
    (tmp_path / "messages" / "deepspeed.json").write_text(json.dumps(SAID), encoding="utf-8")
    (tmp_path / "messages.toml").write_text(table, encoding="utf-8")
    return compiled(tmp_path, {"zero_optimization.stage"})


def test_an_entry_takes_every_text_with_its_piece_and_their_releases(tmp_path: Path) -> None:
    found = joined(tmp_path, f'[a]\n{ENTRY}says = ["the stage"]\nkeys = ["zero_optimization.stage"]\n')
    assert found["releases"] == {"deepspeed": ["0.9.0", "0.10.0"]}
    assert found["entries"]["a"]["texts"] == SAID["texts"]


def test_an_entry_takes_what_python_says_of_a_line(tmp_path: Path) -> None:
    python = '{text = "the stage {} is bad", line = "stage", raises = "ValueError"}'
    found = joined(tmp_path, f"[a]\n{ENTRY}python = [{python}]\n")
    assert found["entries"]["a"]["texts"].keys() == {"the stage {} is bad"}


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (f'[a]\n{ENTRY}says = ["the stage {{}} was"]\n', "a: no release says 'the stage {} was'"),
        (f'[a]\n{ENTRY}text = ["the stage"]\n', "a: no release says 'the stage': run python -m dsmigrate.derivation"),
        (
            f'[a]\n{ENTRY}python = [{{text = "no stage", line = "stage", raises = "ValueError"}}]\n',
            "a: no release says 'no stage': run python -m dsmigrate.derivation",
        ),
        (f'[a]\n{ENTRY}python = [{{text = "the stage {{}} is bad"}}]\n', "a: python lacks line, raises"),
        (f'[a]\n{ENTRY}says = ["stage"]\n[b]\n{ENTRY}says = ["bad"]\n', "b and a both take 'the stage {} is bad'"),
        (f'[a]\n{ENTRY}says = ["bad"]\nkeys = ["zero.stage"]\n', "a: zero.stage is no key"),
        (f'[a]\n{ENTRY}says = ["bad"]\nwhy = ""\n', "a: has unknown fields: why"),
        (f'[a]\n{ENTRY.replace("Why.", "")}says = ["bad"]\n', "a: cause has 0 characters"),
    ],
)
def test_what_no_release_says_and_what_is_not_whole_is_refused(tmp_path: Path, table: str, problem: str) -> None:
    with pytest.raises(FactsError) as error:
        joined(tmp_path, table)
    assert problem in str(error.value)


def test_what_is_committed_is_of_the_releases_that_are_known() -> None:
    packages = read_toml(FOLDER / "messages" / "packages.toml")
    newest = json.loads((FOLDER / "releases.json").read_bytes())["releases"]
    for name, package in packages.items():
        if "modules" not in package:
            continue
        derived = json.loads((FOLDER / "messages" / f"{name}.json").read_bytes())
        assert derived["releases"] == read_of(package, newest), name
