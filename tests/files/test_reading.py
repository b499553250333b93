from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsmigrate.files.reading import MAX_BYTES, read
from dsmigrate.files.text import SourceError


def refusal(path: Path) -> str:
    with pytest.raises(SourceError) as caught:
        read(path)
    return caught.value.message


def test_a_missing_file_is_a_message(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.py") == "no such file"


def test_a_directory_is_a_message(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "this is a directory, not a file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert refusal(tmp_path / "pipe.py") == "not a regular file"


def test_a_huge_file_is_not_loaded(tmp_path: Path) -> None:
    huge = tmp_path / "huge.py"
    with huge.open("wb") as file:
        file.truncate(10 * 1024 * 1024)
    assert refusal(huge) == "the file has 10.0 MiB; files up to 4 MiB are read"


def test_a_file_up_to_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_bytes(b"#" * MAX_BYTES)
    assert len(read(tmp_path / "large.py")) == MAX_BYTES


def test_a_loop_of_symlinks_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "a.py").symlink_to(tmp_path / "b.py")
    (tmp_path / "b.py").symlink_to(tmp_path / "a.py")
    assert "cannot be read" in refusal(tmp_path / "a.py")


def test_a_nul_in_the_path_is_a_message() -> None:
    assert "cannot be read" in refusal(Path("a\0.py"))
