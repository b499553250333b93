from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import NEWEST_DEEPSPEED, Options
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.fields import SETTINGS
from dsmigrate.settings.options import resolve
from dsmigrate.settings.planning import NAMES
from dsmigrate.settings.releases import check_release, listed, releases


def test_without_flags_and_settings_the_defaults_hold(tmp_path: Path) -> None:
    assert resolve(tmp_path, {}).options == Options()


def test_every_option_of_the_codemod_is_a_setting() -> None:
    settings = {name.replace("-", "_") for name in SETTINGS if name not in NAMES}
    assert settings == set(Options.__dataclass_fields__) - {"chosen_for", "chosen_sizes"}


def test_checkpoints_are_files_unless_the_engines_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.dsmigrate]\ncheckpoints = "engine"\n')
    assert resolve(tmp_path, {}).options.checkpoints == "engine"
    assert resolve(tmp_path, {"checkpoints": "files"}).options == Options()


def test_flags_override_settings(tmp_path: Path) -> None:
    (tmp_path / "dsmigrate.toml").write_text('zero-stage = 1\nprecision = "bf16"\n')
    assert resolve(tmp_path, {"zero-stage": 3}).options == Options(zero_stage=3, precision="bf16")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"offload": "nvme"}, "offload nvme needs ZeRO stage 3"),
        ({"offload": "nvme", "zero-stage": 3}, "needs a directory on the NVMe disk"),
        ({"offload": "cpu", "zero-stage": 0}, "at stage 0 DeepSpeed ignores it"),
        ({"config-name": "conf/ds.json"}, "'conf/ds.json' is not a file name"),
        ({"config-name": ".."}, "'..' is not a file name"),
        ({"target-version": "0.8.3"}, "0.9.0-0.9.5, 0.10.0-0.10.3"),
        ({"checkpoints": "directories"}, "--checkpoints 'directories' does not exist; allowed: files, engine"),
        ({"optimizer": "adam"}, "--optimizer 'adam' does not exist; allowed: keep, config"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, flags: dict[str, str | int], says: str) -> None:
    with pytest.raises(SettingsError, match=says.replace("(", r"\(")):
        resolve(tmp_path, flags)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "duplicate keys, which DeepSpeed refuses: a"),
        ("[1]", "a DeepSpeed config is an object, this is list"),
        ('{"a": ', "not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_config_that_deepspeed_would_not_load_is_said(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "ds.json").write_text(text)
    with pytest.raises(SettingsError, match=says):
        resolve(tmp_path, {"config": str(tmp_path / "ds.json")})


def test_a_missing_config_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json: no such file"):
        resolve(tmp_path, {"config": str(tmp_path / "none.json")})


def test_a_config_is_read_as_deepspeed_reads_it_comments_and_all(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{\n  # Hjson\n  "train_batch_size": 8,\n}\n')
    found = resolve(tmp_path, {"config": str(tmp_path / "ds.json")})
    assert found.options.config == {"train_batch_size": 8}
    assert found.options.config_name == "ds.json"
    assert found.config_file == tmp_path / "ds.json"


def test_a_config_elsewhere_does_not_name_the_emitted_one(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text("{}")
    (tmp_path / "src").mkdir()
    assert resolve(tmp_path / "src", {"config": str(tmp_path / "ds.json")}).options.config_name == "ds_config.json"


def test_the_newest_known_release_is_the_default_target() -> None:
    assert releases()[-1] == NEWEST_DEEPSPEED
    assert listed().startswith("0.9.0-0.9.5, ")


@pytest.mark.parametrize(("text", "release"), [("0.9", "0.9.0"), ("v0.14.5", "0.14.5"), (" 0.19.8 ", "0.19.8")])
def test_a_release_may_be_written_short(text: str, release: str) -> None:
    assert check_release(text, "--target-version") == release
