"""Looking for the signs of known bugs in the sources of releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsmigrate.derivation.cli import main
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.index import UnreachableError
from dsmigrate.derivation.known_bugs import read, table, verify
from dsmigrate.derivation.sources import Sources, default_cache, default_index
from tests.derivation.test_committed import CHECKOUT, RELEASES
from tests.derivation.test_real_releases import LAST_OF_MINOR


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    """Three releases: the bug is in the second, the third has no file of that name."""
    texts = {"1.0": "good()\n", "1.1": "bad()\n", "1.2": None}
    for release, text in texts.items():
        folder = tmp_path / release / "deepspeed"
        folder.mkdir(parents=True)
        folder.joinpath("b.py").write_text(f"release = {release}\n", encoding="utf-8")
        if text is not None:
            folder.joinpath("a.py").write_text(text, encoding="utf-8")
    return {release: tmp_path / release for release in texts}


def bug(first: str, last: str, *signs: Any) -> dict[str, Any]:
    return {"first": first, "last": last, "signs": list(signs)}


@pytest.mark.parametrize(
    ("entry", "signed"),
    [
        (bug("1.1", "1.1", {"file": "a.py", "has": ["bad()"]}), ["1.1"]),
        (bug("1.1", "1.1", {"file": "a.py", "lacks": ["good()"]}), ["1.1"]),
        (bug("1.0", "1.1", {"file": "a.py", "has": ["good()"]}, {"file": "a.py", "has": ["bad()"]}), ["1.0", "1.1"]),
        (
            bug("1.1", "1.1", [{"file": "a.py", "has": ["bad()"]}, {"file": "b.py", "has": ["1.0"]}]),
            [],
        ),
        (bug("1.1", "1.2", {"file": "a.py", "has": ["bad()"]}), ["1.1"]),
    ],
)
def test_a_sign_is_looked_for_in_every_release(
    entry: dict[str, Any], signed: list[str], roots: dict[str, Path]
) -> None:
    (found,) = verify({"x": entry}, list(roots), roots)
    assert list(found.signed) == signed
    assert found.holds is (list(found.named) == signed)


def test_the_table_says_where_the_signs_are_instead(roots: dict[str, Path]) -> None:
    wrong = bug("1.1", "1.2", {"file": "b.py", "has": ["release = 1.0"]})
    right = {**bug("1.1", "1.1", {"file": "a.py", "has": ["bad()"]}), "ran": "it broke"}
    lines = table(verify({"one": wrong, "other": right}, list(roots), roots)).splitlines()
    assert lines[0].split() == ["one", "1.1", "to", "1.2", "signs", "also", "in", "1.0,", "not", "in", "1.1,", "1.2"]
    assert lines[1].split() == ["other", "1.1", "ran", "ok"]
    assert lines[2] == "2 bugs, 1 as the sources say, 1 also by running"


def test_a_release_that_is_not_there_is_an_error(roots: dict[str, Path]) -> None:
    with pytest.raises(DerivationError, match=r"x: 0\.9 to 1\.1 are not both among the releases"):
        verify({"x": bug("0.9", "1.1", {"file": "a.py", "has": ["bad()"]})}, list(roots), roots)


def test_only_releases_that_are_there_count(roots: dict[str, Path]) -> None:
    entry = bug("1.1", "1.2", {"file": "a.py", "has": ["bad()"]})
    del roots["1.2"]
    (found,) = verify({"x": entry}, ["1.0", "1.1", "1.2"], roots)
    assert found.named == found.signed == ("1.1",)


@pytest.mark.parametrize(
    ("asked", "code", "ends"), [((), 1, "2 bugs, 1 as"), (("right",), 0, "1 bugs, 1 as"), (("no",), 2, "")]
)
def test_the_command_checks_all_or_those_named(
    asked: tuple[str, ...], code: int, ends: str, roots: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "checkout" / "schemas" / "deepspeed"
    folder.mkdir(parents=True)
    folder.joinpath("releases.json").write_text(json.dumps({"releases": list(roots)}), encoding="utf-8")
    sign = '[{ file = "a.py", has = ["bad()"] }]'
    folder.joinpath("known-bugs.toml").write_text(
        f'[right]\nfirst = "1.1"\nlast = "1.1"\nsigns = {sign}\n[wrong]\nfirst = "1.0"\nlast = "1.1"\nsigns = {sign}\n',
        encoding="utf-8",
    )
    for root in roots.values():
        root.joinpath("deepspeed", "__init__.py").touch()
    options = ["--index-url", "none", "--sources", str(tmp_path), "--root", str(tmp_path / "checkout")]
    done = CliRunner().invoke(main, [*options, "bugs", *asked])
    assert done.exit_code == code
    assert done.output.splitlines()[-1].startswith(ends or "error: known-bugs.toml has no no")


@pytest.mark.derivation
def test_the_sources_of_a_release_of_every_minor_have_the_signs_of_their_bugs_and_of_no_others() -> None:
    sources = Sources(cache=default_cache(), index_url=default_index())
    try:
        roots = sources.roots([RELEASES[0], *LAST_OF_MINOR.values()])
    except UnreachableError as error:
        pytest.skip(str(error))
    found = verify(read(CHECKOUT.folder / "known-bugs.toml"), RELEASES, roots)
    assert [one.name for one in found if not one.holds] == []
