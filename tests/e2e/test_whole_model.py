"""Files of the whole model (MG506): the engine's hooks cannot be pickled, so a bare copy goes there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conversion import adapt_configs, convert
from .launching import HERE, launch_cold

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("whole model")]

SCRIPT = HERE / "whole_model_script.py"


def trained(script: Path, folder: Path) -> dict[str, Any]:
    for _ in range(2):
        outcome = launch_cold(["torchrun", "--nproc_per_node", "2", str(script)], folder, timeout=180)
        line = re.search(r"^FOUND (.*)$", outcome.texts[0], re.MULTILINE)
        if line:
            break
    assert line, outcome.excerpt()
    told: dict[str, Any] = json.loads(line[1])
    return told


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return trained(SCRIPT, tmp_path_factory.mktemp("ddp"))


@pytest.mark.parametrize("stage", range(3))
def test_files_of_the_whole_model_hold_what_ddp_wrote(original: dict[str, Any], tmp_path: Path, stage: int) -> None:
    convert([SCRIPT], stage, tmp_path)
    adapt_configs(tmp_path, stage, choose_stage=False)
    found = trained(tmp_path / SCRIPT.name, tmp_path)
    assert found["losses"] == pytest.approx(original["losses"], rel=1e-5)
    assert found["averaged"] == pytest.approx(original["averaged"], rel=1e-4)
    for (same, mean, hooks), (_, mean_of_ddp, _) in zip(found["kept"], original["kept"], strict=True):
        assert (same, hooks) == (True, 0)
        assert mean == pytest.approx(mean_of_ddp, rel=1e-4)
