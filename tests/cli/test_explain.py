from __future__ import annotations

import json

import pytest

from dsmigrate.cli.app import run
from tests.support.codemod import IDEAS

pytestmark = pytest.mark.usefixtures("stub_codemod")
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("MG110", "there is no code MG110; near: MG101 (the wrap becomes deepspeed.initialize)"),
        ("wrap", "there is no code wrap; near: MG101 (the wrap becomes deepspeed.initialize)"),
        ("zzz", "there is no code zzz; `dsmigrate explain` lists every code"),
    ],
)
def test_an_unknown_code_is_exit_code_2_with_the_nearest(capsys: Captured, code: str, says: str) -> None:
    assert run(["explain", code]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("spelling", ["MG101", "mg101", "101"])
def test_a_code_is_explained_with_its_example(capsys: Captured, spelling: str) -> None:
    assert run(["explain", spelling]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# MG101: the wrap becomes deepspeed.initialize\n")
    assert "+model, *_ = deepspeed.initialize(model=model)\n" in out


def test_json_is_the_catalogue_entry(capsys: Captured) -> None:
    assert run(["explain", "MG101", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["code"], found["kind"], found["before"]) == ("MG101", "converted", IDEAS[0].before)


def test_without_a_code_all_are_listed(capsys: Captured) -> None:
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "MG101  converted  the wrap becomes deepspeed.initialize"
    assert [line[:5] for line in lines] == ["MG101", "MG901", "MG998"]
    assert run(["explain", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3


def test_markdown_is_the_page_of_the_docs(capsys: Captured) -> None:
    assert run(["explain", "MG901", "--format", "markdown"]) == 0
    assert "Nothing is written." in capsys.readouterr().out
