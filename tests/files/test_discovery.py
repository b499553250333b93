from __future__ import annotations

from pathlib import Path

from dsmigrate.files.discovery import discover


def grow(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = 1\n")


def names(root: Path, *paths: Path) -> list[str]:
    return [found.path.relative_to(root).as_posix() for found in discover(paths)]


def test_what_is_not_the_persons_code_is_passed_over(tmp_path: Path) -> None:
    grow(
        tmp_path,
        ".git/hook.py",
        "venv/pyvenv.cfg",
        "venv/lib/a.py",
        "node_modules/b.py",
        "__pycache__/c.py",
        ".hidden.py",
        "notes.txt",
    )
    grow(tmp_path, "conda/conda-meta/history", "conda/bin/d.py", "lib/site-packages/e.py")
    assert names(tmp_path, tmp_path) == []


def test_links_within_a_directory_are_not_followed(tmp_path: Path) -> None:
    grow(tmp_path, "outside/a.py", "in/b.py")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "c.py").symlink_to(tmp_path / "outside" / "a.py")
    assert names(tmp_path, tmp_path / "in") == ["in/b.py"]


def test_directories_are_searched_at_any_depth_in_order(tmp_path: Path) -> None:
    grow(tmp_path, "z.py", "a/train.py", "a/dist/build/deep.py", "a.py")
    assert names(tmp_path, tmp_path) == ["a.py", "z.py", "a/train.py", "a/dist/build/deep.py"]


def test_a_file_given_twice_is_one_file(tmp_path: Path) -> None:
    grow(tmp_path, "a.py", "b.py")
    assert names(tmp_path, tmp_path / "b.py", tmp_path, tmp_path / "a.py") == ["b.py", "a.py"]


def test_a_named_file_counts_whatever_its_name(tmp_path: Path) -> None:
    grow(tmp_path, ".hidden", "venv/script")
    assert names(tmp_path, tmp_path / ".hidden", tmp_path / "venv" / "script") == [".hidden", "venv/script"]


def test_the_root_is_the_directory_given_or_the_parent_of_the_file(tmp_path: Path) -> None:
    grow(tmp_path, "a/b/c.py", "a/d.py")
    roots = [found.root for found in discover([tmp_path / "a" / "d.py", tmp_path / "a" / "b"])]
    assert roots == [tmp_path / "a", tmp_path / "a" / "b"]
