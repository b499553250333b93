from __future__ import annotations

import difflib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.files.diff import gone_lines, unified

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d\x0c\n", "e\u2028e\n", "\n"]), max_size=12)


def test_equal_texts_have_no_diff() -> None:
    assert unified("a\n", "a\n", "x.py") == ""


def test_a_new_file_comes_from_dev_null() -> None:
    assert unified(None, "a\n", "new.json") == "--- /dev/null\n+++ b/new.json\n@@ -0,0 +1 @@\n+a\n"


def test_a_missing_last_newline_is_marked() -> None:
    assert unified("a", "a\n", "x.py") == (
        "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"
    )


def test_absolute_paths_and_blanks_in_names_are_written_as_patch_reads_them() -> None:
    assert unified("a\n", "b\n", "/tmp/x.py").startswith("--- /tmp/x.py\n+++ /tmp/x.py\n")
    assert unified("a\n", "b\n", "./my x.py").startswith("--- a/my x.py\t\n+++ b/my x.py\t\n")


def test_the_lines_that_go_are_numbered_as_in_the_old_file() -> None:
    old = "".join(f"{number}\n" for number in range(1, 31))
    new = old.replace("2\n", "", 1).replace("17\n", "x\ny\n").replace("30\n", "--- a\n")
    assert gone_lines(unified(old, new, "x.py")) == (2, 17, 30)
    assert gone_lines(unified("--- a\n+++ b\n", "", "x.py")) == (1, 2)
    assert gone_lines("") == ()


def test_blank_lines_that_occur_often_are_aligned() -> None:
    old = "".join(f"a{number}\n\n" for number in range(300))
    new = old.replace("a7\n", "").replace("a9\n", "b\n")
    assert gone_lines(unified(old, new, "x.py")) == (15, 19)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_applies_what_is_printed(tmp_path: Path) -> None:
    old, new = "a\r\nb\nc\n\x0cd", "a\r\nB\r\nc\n\x0cd\ne"
    (tmp_path / "x y.py").write_bytes(old.encode())
    patch = unified(old, new, "x y.py") + unified(None, "{}\n", "ds_config.json")
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "x y.py").read_bytes() == new.encode()
    assert (tmp_path / "ds_config.json").read_text() == "{}\n"


@given(LINES, LINES, st.integers(0, 3))
def test_a_diff_has_the_form_that_pythons_own_has(old: list[str], new: list[str], context: int) -> None:
    ours = unified("".join(old), "".join(new), "x.py", context=context)
    theirs = "".join(difflib.unified_diff(old, new, "a/x.py", "b/x.py", n=context))
    assert ours == theirs
    assert len(gone_lines(ours)) == sum(line[:1] == "-" for line in theirs.split("\n")[2:])


@given(LINES, LINES)
def test_the_lines_of_a_diff_are_the_lines_of_both_texts(old: list[str], new: list[str]) -> None:
    body = unified("".join(old), "".join(new), "x.py", context=100).split("@@\n", 1)[-1]
    lines = body.split("\n")[:-1]
    assert [line[1:] + "\n" for line in lines if line[0] in " -"] == (old if old != new else [])
    assert [line[1:] + "\n" for line in lines if line[0] in " +"] == (new if old != new else [])
