from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import Options, Status
from dsmigrate.migration.job import Job, run

pytestmark = pytest.mark.usefixtures("stub_codemod")


def outcome_of(path: Path, source: bytes | None = None) -> tuple[Status, str, str, int]:
    if source is not None:
        path.write_bytes(source)
    result = run(Job(path, path.parent, Options())).result
    change = result.changes[0]
    return result.status, change.code, change.message, change.line


@pytest.mark.parametrize(
    ("source", "code", "says", "line"),
    [
        (b"x = 1\n\x00", "MG900", "NUL byte", 2),
        (b"# coding: klingon\n", "MG900", "unknown encoding", 1),
        (b"#" * (4 * 1024 * 1024 + 1), "MG900", "files up to 4 MiB are read", 1),
        (b"x = 1\nprint 'a'\n", "MG900", "Python 2", 2),
        (b"x = " + b"not " * 1000 + b"1\n", "MG900", "nested", 1),
        (b"# stub: crash\n", "MG998", "RuntimeError: planted", 1),
    ],
)
def test_what_cannot_be_worked_on_is_a_result_with_code_and_line(
    tmp_path: Path, source: bytes, code: str, says: str, line: int
) -> None:
    status, found_code, message, found_line = outcome_of(tmp_path / "a.py", source)
    assert (status, found_code, found_line) == (Status.ERROR, code, line)
    assert says in message


def test_a_file_that_vanished_is_a_result(tmp_path: Path) -> None:
    assert outcome_of(tmp_path / "a.py") == (Status.ERROR, "MG900", "no such file", 1)


def test_an_outcome_carries_the_bytes_it_was_made_from_and_their_encoding(tmp_path: Path) -> None:
    source = "# coding: latin-1\n# stub: convert é\n".encode("latin-1")
    (tmp_path / "a.py").write_bytes(source)
    outcome = run(Job(tmp_path / "a.py", tmp_path, Options()))
    assert (outcome.source, outcome.encoding) == (source, "iso-8859-1")
    assert outcome.result.new_source == source.replace(b"stub: convert", b"done ds_config.json None")


def test_bytes_that_were_read_already_are_not_read_again(tmp_path: Path) -> None:
    job = Job(Path("<stdin>"), tmp_path, Options(), b"# stub: refuse\n")
    assert run(job).result.status is Status.REFUSED
