from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.derivation import sources
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.sources import Sources, default_cache, default_index
from tests.derivation.test_archive import GOOD, packed


def test_a_release_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def fetch(version: str, index_url: str) -> bytes:
        asked.append((version, index_url))
        return packed(GOOD)

    monkeypatch.setattr(sources, "fetch_sdist", fetch)
    place = Sources(cache=tmp_path, index_url="https://index.example/simple")
    assert [place.root("0.9.0"), place.root("0.9.0")] == [tmp_path / "0.9.0"] * 2
    assert asked == [("0.9.0", "https://index.example/simple")]


def test_a_folder_of_unpacked_releases_needs_no_index(tmp_path: Path) -> None:
    (tmp_path / "0.9.0" / "deepspeed").mkdir(parents=True)
    (tmp_path / "0.9.0" / "deepspeed" / "__init__.py").touch()
    place = Sources(cache=tmp_path / "cache", index_url="ftp://nowhere", folder=tmp_path)
    assert place.roots(["0.9.0"]) == {"0.9.0": tmp_path / "0.9.0"}
    with pytest.raises(DerivationError, match=r"DeepSpeed 0\.9\.1: .* does not hold its unpacked sources"):
        place.root("0.9.1")


@pytest.mark.parametrize("name", ["../0.9.0", "latest", "", "0.9.0/.."])
def test_what_is_no_release_number_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DerivationError, match="is not a release of DeepSpeed"):
        Sources(cache=tmp_path, index_url="https://index.example/simple").root(name)


def test_the_index_is_that_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    assert default_index() == "https://index.example/simple"
    monkeypatch.delenv("PIP_INDEX_URL")
    assert default_index().startswith("https://")


def test_without_a_pip_to_ask_the_option_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setattr(sources, "_ASK_PIP", "raise SystemExit(1)")
    with pytest.raises(DerivationError, match="--index-url"):
        default_index()


def test_the_cache_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DSMIGRATE_SDISTS", str(tmp_path))
    assert default_cache() == tmp_path


@pytest.mark.parametrize(
    ("platform", "variable", "below"),
    [
        ("linux", "XDG_CACHE_HOME", "dsmigrate/sdists"),
        ("win32", "LOCALAPPDATA", "dsmigrate/sdists"),
        ("darwin", "HOME", "Library/Caches/dsmigrate/sdists"),
    ],
)
def test_the_cache_lies_where_the_platform_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, variable: str, below: str
) -> None:
    monkeypatch.delenv("DSMIGRATE_SDISTS", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert default_cache() == tmp_path / below
