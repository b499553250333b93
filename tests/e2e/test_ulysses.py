"""What ``recommend`` tells of Ulysses: the config with the script that the notes ask for trains as without it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dsmigrate.recommend import recommend
from tests.recommend.test_unusual import LONG

from .harness import Lab
from .launching import HERE
from .test_recommend import small

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training")]

SCRIPT = HERE / "ulysses_script.py"


def test_shared_samples_give_the_losses_of_whole_ones(lab: Lab, tmp_path: Path) -> None:
    chosen = recommend(LONG).chosen
    assert chosen is not None
    assert chosen.variant.sequence == chosen.config["gradient_accumulation_steps"] == 8
    config = small(chosen.config) | {"sequence_parallel_size": 2, "gradient_accumulation_steps": 2}
    del config["bf16"]
    config["optimizer"]["params"]["torch_adam"] = True
    shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "ds_config.json").write_text(json.dumps(config), encoding="utf-8")
    found = lab.found(SCRIPT.name, tmp_path, "deepspeed")
    assert len(found["split"]) == 4
    assert found["split"] == pytest.approx(found["whole"], rel=1e-4)
    assert found["whole"][0] != pytest.approx(found["whole"][-1], rel=1e-3)
