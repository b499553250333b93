from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dsmigrate.files import exchange, writing
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
@pytest.mark.parametrize("step", ["fsync", "exchange", "write", "chown"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_a_failure_anywhere_loses_nothing(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, step: str, at: int, error: BaseException
) -> None:
    place = writing if step == "exchange" else os
    if step == "write" and at > 1:
        pytest.skip("the journal is written by one call")
    monkeypatch.setattr(place, step, planted(getattr(place, step), at, error))
    if isinstance(error, OSError) and step == "chown":  # there is another way
        write_all(replacing(*files))
        assert [path.read_bytes() for path in files] == [NEW] * 3
        return
    with pytest.raises(WriteError if isinstance(error, OSError) else type(error)):
        write_all(replacing(*files))
    assert_untouched(files)


def test_a_full_disk_is_named(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(writing.os, "fsync", planted(os.fsync, 3, full))
    with pytest.raises(WriteError, match=r"b\.py: No space left on device"):
        write_all(replacing(*files))


def test_new_files_and_directories_disappear_again_on_failure(files: list[Path], tmp_path: Path) -> None:
    gone = Write(tmp_path / "gone.py", NEW, OLD, tmp_path)
    with pytest.raises(WriteError, match="it is gone"):
        write_all([creating(tmp_path / "out" / "deep" / "x.py", tmp_path), *replacing(files[0]), gone])
    assert_untouched(files)


def test_a_failed_rename_takes_new_files_back(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    root = files[0].parent
    monkeypatch.setattr(writing, "exchange", planted(writing.exchange, 1, OSError(errno.EIO, "Input/output error")))
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_two_renames_waits_for_the_last(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The set is whole when the signal is heard."""
    seen: list[list[bytes]] = []

    def heard(_number: int, _frame: object) -> None:
        seen.append([path.read_bytes() for path in files])

    def exchange_and_signal(ours: Path, theirs: Path) -> None:
        exchange.exchange(ours, theirs)
        signal.raise_signal(number)

    former = signal.signal(number, heard)
    try:
        monkeypatch.setattr(writing, "exchange", exchange_and_signal)
        write_all(replacing(*files))
    finally:
        signal.signal(number, former)
    assert seen == [[NEW] * 3] * 3
    assert names(files[0].parent) == ["a.py", "b.py", "c.py"]


@pytest.mark.parametrize("has_links", [True, False])
def test_where_names_cannot_be_exchanged_the_old_file_has_a_third_for_a_moment(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(exchange, "_system_call", lambda: None)
    if not has_links:
        monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(os, "replace", planted(os.replace, 3, OSError(errno.EIO, "Input/output error")))
    with pytest.raises(WriteError):
        write_all([*replacing(*files), creating(files[0].parent / "x.json", files[0].parent)])
    assert_untouched(files)
    write_all([*replacing(*files), creating(files[0].parent / "x.json", files[0].parent)])
    assert names(files[0].parent) == ["a.py", "b.py", "c.py", "x.json"]
    assert {path.read_bytes() for path in files[0].parent.iterdir()} == {NEW}


def test_a_file_with_other_hard_links_is_refused(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "same.py").hardlink_to(files[1])
    with pytest.raises(WriteError, match=r"b\.py: the file has 2 hard links"):
        write_all(replacing(*files))
    (tmp_path / "same.py").unlink()
    assert_untouched(files)


def in_place(path: Path) -> None:
    path.write_bytes(b"edited\n")


def by_another_file(path: Path) -> None:
    saved = path.with_name("saved")
    saved.write_bytes(b"edited\n")
    saved.rename(path)


@pytest.mark.parametrize("edit", [in_place, by_another_file])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_edit_right_before_the_change_of_places_is_not_lost(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, edit: Callable[[Path], None], at: int
) -> None:
    def edited_first(ours: Path, theirs: Path) -> None:
        if theirs == files[at] and theirs.read_bytes() == OLD:
            edit(theirs)
        exchange.exchange(ours, theirs)

    monkeypatch.setattr(writing, "exchange", edited_first)
    with pytest.raises(WriteError, match=rf"{files[at].name}: the file has changed since it was read"):
        write_all(replacing(*files))
    assert [path.read_bytes() for path in files] == [b"edited\n" if index == at else OLD for index in range(3)]
    assert names(files[0].parent) == ["a.py", "b.py", "c.py"]


def test_an_edit_of_what_has_changed_places_stays_when_the_set_is_undone(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_later(ours: Path, theirs: Path) -> None:
        if theirs == files[1]:
            in_place(files[0])
            raise OSError(errno.EIO, "Input/output error")
        exchange.exchange(ours, theirs)

    monkeypatch.setattr(writing, "exchange", fails_later)
    with pytest.raises(WriteError, match=r"what was edited meanwhile stays, and what was there before is in .*-0"):
        write_all(replacing(*files))
    assert [path.read_bytes() for path in files] == [b"edited\n", OLD, OLD]
    (kept,) = [path for path in files[0].parent.iterdir() if path.name.endswith("-0")]
    assert kept.read_bytes() == OLD


def test_a_new_file_that_appears_before_it_is_named_stays(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    new = files[0].parent / "ds_config.json"

    def appears_first(ours: Path, theirs: Path) -> None:
        exchange.exchange(ours, theirs)
        new.write_bytes(b"mine\n")

    monkeypatch.setattr(writing, "exchange", appears_first)
    with pytest.raises(WriteError, match=r"ds_config\.json: the file has changed since it was read"):
        write_all([*replacing(files[0]), creating(new, new.parent)])
    assert new.read_bytes() == b"mine\n"
    assert files[0].read_bytes() == OLD
