from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dsmigrate.files import writing
from dsmigrate.files.writing import Write, WriteError, write_all

OLD, NEW = b"old\r\n", b"new\r\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path in paths:
        path.write_bytes(OLD)
    return paths


def replacing(*paths: Path, root: Path | None = None) -> list[Write]:
    return [Write(path, NEW, OLD, root or path.parent) for path in paths]


def creating(path: Path, root: Path) -> Write:
    return Write(path, NEW, None, root)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def assert_untouched(files: list[Path]) -> None:
    assert [path.read_bytes() for path in files] == [OLD] * 3
    assert names(files[0].parent) == ["a.py", "b.py", "c.py"]


def planted(call: Callable[..., object], at: int, error: BaseException) -> Callable[..., object]:
    """Return ``call`` that raises ``error`` when it is called for the ``at``-th time."""
    calls = 0

    def planted_call(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == at:
            raise error
        return call(*arguments, **named)

    return planted_call


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("step", ["fsync", "replace", "link", "chown"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_a_failure_anywhere_loses_nothing(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, step: str, at: int, error: BaseException
) -> None:
    monkeypatch.setattr(writing.os, step, planted(getattr(os, step), at, error))
    if isinstance(error, OSError) and step in {"link", "chown"}:  # there is another way
        write_all(replacing(*files))
        assert [path.read_bytes() for path in files] == [NEW] * 3
        return
    with pytest.raises(WriteError if isinstance(error, OSError) else type(error)):
        write_all(replacing(*files))
    assert_untouched(files)


def test_a_full_disk_is_named(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(writing.os, "fsync", planted(os.fsync, 2, full))
    with pytest.raises(WriteError, match=r"b\.py: No space left on device"):
        write_all(replacing(*files))


def test_new_files_and_directories_disappear_again_on_failure(files: list[Path], tmp_path: Path) -> None:
    gone = Write(tmp_path / "gone.py", NEW, OLD, tmp_path)
    with pytest.raises(WriteError, match="it is gone"):
        write_all([creating(tmp_path / "out" / "deep" / "x.py", tmp_path), *replacing(files[0]), gone])
    assert_untouched(files)


def test_a_failed_rename_takes_new_files_back(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    root = files[0].parent
    monkeypatch.setattr(writing.os, "replace", planted(os.replace, 2, OSError(errno.EIO, "Input/output error")))
    with pytest.raises(WriteError, match="Input/output error"):
        write_all([creating(root / "out" / "x.py", root), *replacing(files[0])])
    assert_untouched(files)


def test_a_file_that_changed_meanwhile_is_not_overwritten(files: list[Path]) -> None:
    files[1].write_bytes(b"edited\n")
    with pytest.raises(WriteError, match=r"b\.py: the file has changed since it was read"):
        write_all(replacing(*files))
    assert [path.read_bytes() for path in files] == [OLD, b"edited\n", OLD]


def test_a_file_that_appeared_meanwhile_is_not_overwritten(files: list[Path]) -> None:
    with pytest.raises(WriteError, match="changed since"):
        write_all([creating(files[0], files[0].parent)])
    assert_untouched(files)


def test_a_read_only_file_stops_the_whole_set_even_for_root(files: list[Path]) -> None:
    files[2].chmod(0o444)
    with pytest.raises(WriteError, match=r"c\.py: the file is read-only"):
        write_all(replacing(*files))
    assert_untouched(files)


def test_a_read_only_directory_stops_the_whole_set_even_for_root(files: list[Path]) -> None:
    folder = files[0].parent / "shut"
    folder.mkdir()
    folder.chmod(0o555)
    try:
        with pytest.raises(WriteError, match="shut is read-only"):
            write_all([*replacing(*files), creating(folder / "x.py", folder)])
    finally:
        folder.chmod(0o755)
        folder.rmdir()
    assert_untouched(files)


def test_a_link_out_of_the_tree_is_not_followed(files: list[Path], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    link = tree / "train.py"
    link.symlink_to(files[0])
    with pytest.raises(WriteError, match="a symlink leads out of"):
        write_all(replacing(link))
    assert files[0].read_bytes() == OLD


def test_a_directory_link_out_of_the_tree_is_not_followed(files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "sub").symlink_to(tmp_path)
    with pytest.raises(WriteError, match="a symlink leads out of"):
        write_all([creating(out / "sub" / "new.py", out)])
    assert not (files[0].parent / "new.py").exists()


def test_a_link_within_the_tree_is_written_through(files: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to("a.py")
    write_all(replacing(link))
    assert link.is_symlink()
    assert files[0].read_bytes() == NEW


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o664])
def test_the_mode_stays(files: list[Path], mode: int) -> None:
    files[0].chmod(mode)
    write_all(replacing(files[0]))
    assert stat.S_IMODE(files[0].stat().st_mode) == mode


def test_a_new_file_has_the_mode_the_umask_gives(tmp_path: Path) -> None:
    former = os.umask(0o027)
    try:
        write_all([creating(tmp_path / "deep" / "x.json", tmp_path)])
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "deep" / "x.json").stat().st_mode) == 0o640


def test_a_set_is_written_and_nothing_else_is_left(files: list[Path]) -> None:
    root = files[0].parent
    write_all([*replacing(*files), creating(root / "ds_config.json", root)])
    assert names(root) == ["a.py", "b.py", "c.py", "ds_config.json"]
    assert {path.read_bytes() for path in root.iterdir()} == {NEW}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_two_renames_waits_for_the_last(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The set is whole when the signal is heard."""
    seen: list[list[bytes]] = []

    def heard(_number: int, _frame: object) -> None:
        seen.append([path.read_bytes() for path in files])

    def replace_and_signal(source: Path, target: Path) -> None:
        os.rename(source, target)  # noqa: PTH104 - os.replace is what is stood in for
        signal.raise_signal(number)

    former = signal.signal(number, heard)
    try:
        monkeypatch.setattr(writing.os, "replace", replace_and_signal)
        write_all(replacing(*files))
    finally:
        signal.signal(number, former)
    assert seen == [[NEW] * 3] * 3
    assert names(files[0].parent) == ["a.py", "b.py", "c.py"]


def test_where_there_are_no_hard_links_the_old_file_is_copied(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(writing.os, "link", no_links)
    monkeypatch.setattr(writing.os, "replace", planted(os.replace, 3, OSError(errno.EIO, "Input/output error")))
    with pytest.raises(WriteError):
        write_all(replacing(*files))
    assert_untouched(files)
