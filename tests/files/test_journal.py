"""What an interrupted run leaves, what becomes of it, and what a journal from a stranger cannot do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.cli.app import run
from dsmigrate.files import writing
from dsmigrate.files.exchange import exchange
from dsmigrate.files.journal import NAME, JournalError, Planned, digest, found, journal, recover
from dsmigrate.files.writing import Write, WriteError, write_all
from tests.files.crashes import child, contents, kill, project

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a killed run is a fork")

Captured = pytest.CaptureFixture[str]
OLD, NEW = b"old\n", b"new\n"
FRESH = f".dsmigrate-{0:016x}-0"


def killed(folder: Path, *, whole: bool = False) -> None:
    """Kill a run in a folder when half of its files are done, or all of them."""
    writes = project(folder)

    def exchanged(ours: Path, theirs: Path) -> None:
        exchange(ours, theirs)
        if theirs == writes[1].path:
            kill("exchanged")

    def work() -> None:
        if whole:
            writing._remove_leftovers = lambda _: kill("removing")
        else:
            writing.exchange = exchanged
        write_all(writes)

    assert child(work) == -9


def forged(folder: Path, **row: Any) -> Path:
    rows = [{"target": "a.py", "fresh": FRESH, "old": digest(OLD), "new": digest(NEW)} | row]
    path = folder / NAME
    path.write_text(json.dumps({"version": 1, "files": rows}))
    return path


def test_the_next_run_says_what_it_found_and_recover_mends_it(tmp_path: Path, capsys: Captured) -> None:
    killed(tmp_path)
    assert found(tmp_path) == found(tmp_path / "deep") == tmp_path / NAME
    (tmp_path / "ds_config.json").write_text('{"train_batch_size": 8}')
    run(["check", str(tmp_path / "ds_config.json")])
    assert "`dsmigrate recover` finishes or undoes it" in capsys.readouterr().err
    (tmp_path / "ds_config.json").unlink()
    before = contents(tmp_path)
    assert run(["recover", "--dry-run", str(tmp_path / "deep")]) == 0
    assert f"would undo {tmp_path / 'a.py'}" in capsys.readouterr().out
    assert contents(tmp_path) == before
    assert run(["recover", "--format", "json", str(tmp_path)]) == 0
    (done,) = json.loads(capsys.readouterr().out)["sets"]
    assert done["finished"] == done["left"] == []
    assert str(tmp_path / "a.py") in done["undone"]
    assert run(["recover", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing was interrupted here\n"


def test_the_next_run_that_writes_recovers_first(tmp_path: Path, capsys: Captured) -> None:
    killed(tmp_path)
    config = tmp_path / "ds_config.json"
    config.write_text('{\n  "train_batch_size": 8,\n  "amp": {"enabled": false},\n  "fp16": {"enabled": true}\n}\n')
    assert run(["check", "--fix", "--exit-zero", str(config)]) == 0
    assert f"undid {tmp_path / 'a.py'}" in capsys.readouterr().err
    assert "amp" not in config.read_text()
    assert found(tmp_path) is None


def test_a_set_that_was_whole_is_finished(tmp_path: Path, capsys: Captured) -> None:
    killed(tmp_path, whole=True)
    assert run(["recover", str(tmp_path)]) == 0
    assert f"finished {tmp_path / 'a.py'}" in capsys.readouterr().out


def test_what_was_edited_since_stays_and_its_former_content_is_named(tmp_path: Path, capsys: Captured) -> None:
    killed(tmp_path)
    (tmp_path / "a.py").write_bytes(b"mine\n")
    assert run(["recover", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert f"{tmp_path / 'a.py'} was edited since and stays as it is" in out
    assert (tmp_path / "a.py").read_bytes() == b"mine\n"
    (kept,) = [line.split(" has what")[0] for line in out.splitlines() if "has what was in it before" in line]
    assert Path(kept).read_bytes().startswith(b"old")


def test_a_run_beside_another_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(OLD)
    with (
        journal(tmp_path, [Planned(file, tmp_path / FRESH, digest(OLD), digest(NEW))]),
        pytest.raises(WriteError, match="another run of dsmigrate is writing in"),
    ):
        write_all([Write(file, NEW, OLD, tmp_path)])
    assert file.read_bytes() == OLD
    write_all([Write(file, NEW, OLD, tmp_path)])
    assert contents(tmp_path) == {"a.py": NEW}


def test_an_interrupted_run_is_recovered_before_the_next_set(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(OLD)
    forged(tmp_path)
    with pytest.raises(WriteError, match="an interrupted run has left"):
        write_all([Write(file, NEW, OLD, tmp_path)])
    assert file.read_bytes() == OLD


@pytest.mark.parametrize(
    "row",
    [
        {"target": "../outside.py"},
        {"target": "/etc/passwd"},
        {"target": "link/outside.py"},
        {"target": "link.py"},
        {"target": ""},
        {"target": 3},
        {"fresh": "../outside.py"},
        {"fresh": "a.py"},
        {"fresh": None},
        {"old": "x"},
        {"new": None},
        {"old": 3},
    ],
)
def test_a_forged_journal_touches_nothing(tmp_path: Path, row: dict[str, Any], capsys: Captured) -> None:
    outside, inside = tmp_path / "outside.py", tmp_path / "work"
    outside.write_bytes(NEW)
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    (inside / "link.py").symlink_to(outside)
    (inside / "a.py").write_bytes(NEW)
    (inside / FRESH).write_bytes(OLD)
    path = forged(inside, **row)
    with pytest.raises(JournalError, match="does not hold, and nothing is done about it"):
        recover(path)
    assert run(["recover", str(inside)]) == 2
    assert "does not hold" in capsys.readouterr().err
    assert outside.read_bytes() == (inside / "a.py").read_bytes() == NEW
    assert (inside / FRESH).read_bytes() == OLD


@pytest.mark.parametrize(
    "text", ["[]", "{", "null", '{"version": 2, "files": []}', '{"version": 1, "files": {}}', "[" * 100_000]
)
def test_what_is_no_journal_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(JournalError, match="does not hold"):
        recover(tmp_path / NAME)


def test_contents_that_are_not_as_a_journal_says_stay(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"mine\n")
    (tmp_path / FRESH).write_bytes(b"another\n")
    assert recover(forged(tmp_path)).left == (tmp_path / "a.py",)
    assert (tmp_path / "a.py").read_bytes() == b"mine\n"


def make_link(path: Path) -> None:
    path.symlink_to("a.py")


@pytest.mark.parametrize("make", [os.mkfifo, make_link, Path.mkdir])
def test_a_journal_that_is_no_file_is_neither_followed_nor_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(OLD)
    make(tmp_path / NAME)
    assert found(tmp_path) is None
    with pytest.raises(WriteError):
        write_all([Write(file, NEW, OLD, tmp_path)])
    assert file.read_bytes() == OLD


def test_files_that_no_folder_holds_have_a_journal_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "one/a.py", tmp_path / "two/b.py"]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(OLD)
    taken: list[Path] = []

    def told(folder: Path, planned: Sequence[Planned]) -> AbstractContextManager[None]:
        taken.append(folder)
        return journal(folder, planned)

    monkeypatch.setattr(writing, "journal", told)
    writable = writing._is_writable
    monkeypatch.setattr(writing, "_is_writable", lambda path: path != tmp_path and writable(path))
    write_all([Write(file, NEW, OLD, file.parent) for file in files])
    assert taken == [file.parent for file in files]
    assert contents(tmp_path) == {"one/a.py": NEW, "two/b.py": NEW}
