from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsmigrate.derivation.cli import main
from tests.derivation.fake import release


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a checkout that knows two fake releases, and with the sources of three."""
    base = tmp_path_factory.mktemp("releases")
    root = base / "checkout"
    folder = root / "schemas" / "deepspeed"
    (folder / "keys").mkdir(parents=True)
    (folder / "releases.json").write_text('{\n  "comment": "c",\n  "releases": [\n    "0.9.0",\n    "0.10.0"\n  ]\n}\n')
    (folder / "keys" / "top_level.toml").write_text('["clip"]\nsummary = "s"\n')
    (folder / "keys" / "optimizer_types.toml").write_text('["Adam"]\nsummary = "s"\n')
    for name, default in (("0.9.0", "0.0"), ("0.10.0", "0.0"), ("0.11.0", "1.0")):
        more = 'param_dict.get("fresh", 1)' if name == "0.11.0" else ""
        release(base / "sources" / name, initialize=f'param_dict.get("clip", {default})\n{more}')
    assert run(root, "rebuild").exit_code == 0
    return base


@pytest.fixture
def checkout(made: Path, tmp_path: Path) -> Path:
    """Return the root of a checkout of the test's own that knows two fake releases."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "checkout"


def run(root: Path, *arguments: str) -> Result:
    options = ["--root", str(root), "--sources", str(root.parent / "sources"), "--jobs", "2"]
    return CliRunner().invoke(main, [*options, *arguments])


def test_rebuild_writes_what_a_check_finds_in_order(checkout: Path) -> None:
    derived = checkout / "schemas" / "deepspeed" / "derived"
    assert sorted(path.name for path in derived.iterdir()) == ["optimizers.json", "schedulers.json", "top_level.json"]
    assert run(checkout, "rebuild", "--check").exit_code == 0
    (derived / "top_level.json").write_text("{}", encoding="utf-8")
    result = run(checkout, "rebuild", "--check")
    assert (result.exit_code, result.stdout) == (
        1,
        "top_level.json is stale: run python -m dsmigrate.derivation rebuild\n",
    )


def test_add_appends_a_release_and_reports_what_changed(checkout: Path) -> None:
    result = run(checkout, "add", "0.11.0")
    folder = checkout / "schemas" / "deepspeed"
    assert json.loads((folder / "derived" / "top_level.json").read_text())["keys"]["clip"] == [
        {
            "from": "0.9.0",
            "type": ["number"],
            "default": 0.0,
            "validated": "read",
            "source": "deepspeed/runtime/config.py",
        },
        {
            "from": "0.11.0",
            "type": ["number"],
            "default": 1.0,
            "validated": "read",
            "source": "deepspeed/runtime/config.py",
        },
    ]
    assert (folder / "releases.json").read_text().splitlines()[-4:] == ['    "0.10.0",', '    "0.11.0"', "  ]", "}"]
    assert result.stdout == (
        "DeepSpeed 0.10.0 -> 0.11.0\n\n"
        "added (1)\n  fresh: integer = 1\n\n"
        "default changed (1)\n  clip: 0.0 -> 1.0\n\n"
        "without documentation in keys/*.toml (1)\n  fresh\n"
    )
    assert result.exit_code == 1


def test_add_of_a_documented_release_exits_with_0_and_equals_a_rebuild(checkout: Path) -> None:
    (checkout / "schemas" / "deepspeed" / "keys" / "more.toml").write_text('["fresh"]\nsummary = "s"\n')
    assert run(checkout, "add", "0.11.0").exit_code == 0
    assert run(checkout, "rebuild", "--check").exit_code == 0


def test_adding_a_known_release_changes_nothing(checkout: Path) -> None:
    result = run(checkout, "add", "0.10.0")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "DeepSpeed 0.9.0 -> 0.10.0\n\nno differences\n\n",
        "",
    )


def test_a_release_between_two_others_takes_its_place(checkout: Path) -> None:
    release(checkout.parent / "sources" / "0.9.5", initialize='param_dict.get("clip", 5.0)')
    assert run(checkout, "add", "0.9.5").stdout.startswith("DeepSpeed 0.9.0 -> 0.9.5\n")
    assert run(checkout, "rebuild", "--check").exit_code == 0
    assert "clip: 5.0 -> 0.0" in run(checkout, "report", "0.9.5", "0.10.0").stdout


def test_show_prints_one_release_as_json(checkout: Path) -> None:
    shown = json.loads(run(checkout, "show", "0.10.0").stdout)
    assert shown["release"] == "0.10.0"
    assert shown["keys"]["clip"]["default"] == 0.0
    assert sorted(shown["schedulers"]["classes"]) == ["WarmupLR"]


def test_report_prints_the_differences_of_two_releases(checkout: Path) -> None:
    assert run(checkout, "report", "0.9.0", "0.10.0").stdout == "no differences\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "0.8.0"), "DeepSpeed 0.8.0 is not in releases.json; derive it with `add 0.8.0`"),
        (("add", "newest"), "'newest' is not a release of DeepSpeed; write one like 0.19.8"),
        (("add", "0.12.0"), "does not hold its unpacked sources"),
    ],
)
def test_an_error_is_one_line_and_exits_with_2(checkout: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run(checkout, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_outside_a_checkout_it_says_where_to_run(tmp_path: Path) -> None:
    result = run(tmp_path, "rebuild")
    assert result.exit_code == 2
    assert "run this at the root of a checkout" in result.stderr


def test_a_release_that_cannot_be_derived_changes_nothing(checkout: Path) -> None:
    release(checkout.parent / "sources" / "0.12.0", module="1 / 0")
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    assert run(checkout, "add", "0.12.0").exit_code == 2
    assert before == {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}


def test_documentation_that_is_no_toml_is_told(checkout: Path) -> None:
    (checkout / "schemas" / "deepspeed" / "keys" / "bad.toml").write_text("[")
    result = run(checkout, "add", "0.10.0")
    assert result.exit_code == 2
    assert "bad.toml" in result.stderr
