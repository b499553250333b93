from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.toml import settings_for


def refusal(folder: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        settings_for(folder)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_project_without_settings_has_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert settings_for(tmp_path) == ({}, None)


def test_someone_elses_broken_pyproject_is_not_our_business(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other\n")
    assert settings_for(tmp_path) == ({}, None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("zero-stage = 4\n", "dsmigrate.toml:1: zero-stage 4 does not exist; allowed: 0, 1, 2, 3"),
        ('zero-stage = "2"\n', "dsmigrate.toml:1: zero-stage '2' is not a number; allowed: 0, 1, 2, 3"),
        ("zero-stage = true\n", "dsmigrate.toml:1: zero-stage True is not a number; allowed: 0, 1, 2, 3"),
        ("\n\nzero_stage = 2\n", "dsmigrate.toml:3: unknown setting 'zero_stage'; did you mean zero-stage?"),
        ("'precison' = 2\n", "dsmigrate.toml:1: unknown setting 'precison'; did you mean precision?"),
        ('offload = "gpu"\n', "dsmigrate.toml:1: offload 'gpu' does not exist; allowed: none, cpu, nvme"),
        ("offload = [1]\n", "dsmigrate.toml:1: offload [1] is not text; allowed: none, cpu, nvme"),
        ('target-version = "1.0"\n', "dsmigrate.toml:1: target-version '1.0' is not a DeepSpeed release from 0.9 on"),
        ('config-name = ""\n', "dsmigrate.toml:1: config-name is empty"),
        ("zzz = 1\n", "unknown setting 'zzz'; known: zero-stage, offload"),
        ("x = = 1\n", "dsmigrate.toml: not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "dsmigrate.toml").write_text(text)
    assert says in refusal(tmp_path)


def test_a_place_in_pyproject_is_looked_for_in_its_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.a]\noffload = "x"\n\n[tool.dsmigrate]\noffload = "x"\n')
    assert "pyproject.toml:5: offload 'x'" in refusal(tmp_path)


def test_a_table_that_is_no_table_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\ndsmigrate = 1\n")
    assert refusal(tmp_path) == "pyproject.toml: tool.dsmigrate is not a table"


def test_the_nearest_file_upward_counts(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "dsmigrate.toml").write_text("zero-stage = 1\n")
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.dsmigrate]\nprecision = "bf16"\n')
    assert settings_for(deep) == ({"precision": "bf16"}, tmp_path / "a" / "pyproject.toml")


def test_our_own_file_counts_before_pyproject_of_the_same_directory(tmp_path: Path) -> None:
    (tmp_path / "dsmigrate.toml").write_text("zero-stage = 1\n")
    (tmp_path / "pyproject.toml").write_text("[tool.dsmigrate]\nzero-stage = 3\n")
    assert settings_for(tmp_path)[0] == {"zero-stage": 1}


def test_paths_are_relative_to_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "dsmigrate.toml").write_text('config = "conf/ds.json"\n')
    (tmp_path / "sub").mkdir()
    assert settings_for(tmp_path / "sub")[0] == {"config": str(tmp_path / "conf" / "ds.json")}
