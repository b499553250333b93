"""Files of the whole model (MG506): the engine's hooks cannot be pickled, so a bare copy goes there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .conversion import adapt_configs, convert
from .harness import Lab
from .launching import HERE

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training")]

SCRIPT = HERE / "whole_model_script.py"


@pytest.fixture(scope="module")
def original(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("ddp")
    shutil.copy(SCRIPT, folder)
    return lab.found(SCRIPT.name, folder, "torch")


@pytest.mark.parametrize("stage", range(3))
def test_files_of_the_whole_model_hold_what_ddp_wrote(
    lab: Lab, original: dict[str, Any], tmp_path: Path, stage: int
) -> None:
    convert([SCRIPT], stage, tmp_path)
    adapt_configs(tmp_path, stage, choose_stage=False)
    found = lab.found(SCRIPT.name, tmp_path, "deepspeed")
    assert found["losses"] == pytest.approx(original["losses"], rel=1e-5)
    assert found["averaged"] == pytest.approx(original["averaged"], rel=1e-4)
    for (same, mean, hooks), (_, mean_of_ddp, _) in zip(found["kept"], original["kept"], strict=True):
        assert (same, hooks) == (True, 0)
        assert mean == pytest.approx(mean_of_ddp, rel=1e-4)
