from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from dsmigrate.derivation import archive
from dsmigrate.derivation.archive import extract
from dsmigrate.derivation.errors import DerivationError

GOOD = {
    "deepspeed-0.9.0/deepspeed/__init__.py": "",
    "deepspeed-0.9.0/deepspeed/runtime/config.py": "x = 1\n",
    "deepspeed-0.9.0/deepspeed/ops/csrc/adam.cu": "not taken",
    "deepspeed-0.9.0/setup.py": "raise SystemExit",
    "deepspeed-0.9.0/bin/deepspeed.py": "not taken",
    "deepspeed-0.9.0/csrc/deepspeed/x.py": "not taken",
    "deepspeed-0.9.0/csrc/aio/io.cpp": "int x;",
}


def packed(files: dict[str, str], links: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as target:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            target.addfile(member, io.BytesIO(text.encode()))
        for name, to in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, to
            target.addfile(member)
    return out.getvalue()


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_python_files_of_the_package_and_its_cpp_are_taken(tmp_path: Path) -> None:
    extract(packed(GOOD), tmp_path / "0.9.0", "0.9.0")
    assert files_below(tmp_path) == [
        "0.9.0/csrc/aio/io.cpp", "0.9.0/deepspeed/__init__.py", "0.9.0/deepspeed/runtime/config.py", "0.9.0/setup.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["../outside.py", "deepspeed-0.9.0/deepspeed/../../../outside.py", "/outside.py", "d/deepspeed/a\\..\\b.py"]
)
def test_a_name_that_climbs_out_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(DerivationError, match="unsafe name"):
        extract(packed({**GOOD, name: "evil"}), tmp_path / "cache" / "0.9.0", "0.9.0")
    assert files_below(tmp_path) == []


def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    data = packed(GOOD, {"deepspeed-0.9.0/deepspeed/evil.py": "/etc/passwd"})
    with pytest.raises(DerivationError, match="not a regular file"):
        extract(data, tmp_path / "0.9.0", "0.9.0")
    assert files_below(tmp_path) == []


def test_a_file_of_absurd_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGEST_FILE", 3)
    with pytest.raises(DerivationError, match="too large"):
        extract(packed(GOOD), tmp_path / "0.9.0", "0.9.0")


@pytest.mark.parametrize("data", [b"", b"junk", packed(GOOD)[:60]], ids=["empty", "junk", "cut off"])
def test_what_is_no_archive_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(
        DerivationError, match=r"0\.9\.0: (its source archive cannot be read|the source archive holds no)"
    ):
        extract(data, tmp_path / "0.9.0", "0.9.0")
    assert files_below(tmp_path) == []


def test_an_archive_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DerivationError, match=r"holds no deepspeed/__init__\.py"):
        extract(packed({"deepspeed-0.9.0/setup.py": ""}), tmp_path / "0.9.0", "0.9.0")


def test_a_half_written_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "0.9.0" / "deepspeed").mkdir(parents=True)
    (tmp_path / "0.9.0" / "deepspeed" / "stale.py").write_text("", encoding="utf-8")
    extract(packed(GOOD), tmp_path / "0.9.0", "0.9.0")
    assert "0.9.0/deepspeed/stale.py" not in files_below(tmp_path)
