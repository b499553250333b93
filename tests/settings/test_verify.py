from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.toml import forget, settings_for
from dsmigrate.settings.verify import NAMES, setting, verify_settings_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    forget()
    return tmp_path


def test_the_table_has_the_names_of_the_flags(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        "[tool.dsmigrate]\nzero-stage = 3\n[tool.dsmigrate.verify]\nsteps = 5\nzero-stage = [0, 2]\ntimeout = 30\n"
        'resume-args = "--resume last.pt"\nconverted-args = ["--deepspeed", "a b"]\n'
    )
    assert verify_settings_for(folder) == {
        "steps": 5,
        "stages": (0, 2),
        "timeout": 30.0,
        "resume": ("--resume", "last.pt"),
        "converted_arguments": ("--deepspeed", "a b"),
    }
    assert settings_for(folder)[0] == {"zero-stage": 3}


def test_without_a_table_nothing_is_set(folder: Path) -> None:
    (folder / "dsmigrate.toml").write_text("zero-stage = 1\n")
    assert verify_settings_for(folder) == {}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("steps", 0, "--steps 0 is not a number from 1 on"),
        ("processes", True, "--processes True is not a number from 1 on"),
        ("seed", -1, "--seed -1 is not a number from 0 on"),
        ("timeout", 0, "--timeout 0 is not a number above 0"),
        ("zero-stage", "0,4", "--zero-stage '0,4': ZeRO stages are 0, 1, 2 and 3; several as 0,2,3"),
        ("device", "tpu", "--device 'tpu' does not exist; allowed: auto, cuda, pretend, cpu"),
        ("launcher", "mpirun", "--launcher 'mpirun' does not exist; allowed: auto, torchrun, deepspeed, srun, python"),
        ("python", "", "--python '' is not a text"),
        ("resume-args", "--resume 'x", '--resume-args "--resume \'x": No closing quotation'),
        ("stepps", 3, "--unknown setting 'stepps'; did you mean steps?"),
    ],
)
def test_what_is_not_allowed_is_said(name: str, value: object, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        setting(name, value)
    assert str(error.value) == said


def test_a_mistake_in_the_file_has_its_line(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.dsmigrate.verify]\nsteps = 5\ntolerance = 0\n")
    with pytest.raises(SettingsError, match=r"pyproject.toml:3: tolerance 0 is not a number above 0"):
        verify_settings_for(folder)


def test_every_name_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"--{name}" not in page] == []
