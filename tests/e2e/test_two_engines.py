"""What the refusal of a GAN (MG901) says: where two engines go wrong, and how they train as DDP does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .harness import Lab
from .launching import HERE

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training")]

SCRIPT = HERE / "two_engines_script.py"


@pytest.fixture(scope="module")
def found(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The losses of each way to train, by its name; the text of the error where there was one."""
    folder: Path = tmp_path_factory.mktemp("gan")
    shutil.copy(SCRIPT, folder)
    return lab.found(SCRIPT.name, folder, "deepspeed")


@pytest.mark.parametrize("stage", range(4))
def test_the_bare_frozen_critic_in_the_generators_turn_trains_as_ddp_does(found: dict[str, Any], stage: int) -> None:
    assert found[f"bare {stage}"] == pytest.approx(found["whole ddp"], rel=1e-5)


@pytest.mark.parametrize("stage", range(4))
def test_models_with_losses_of_their_own_train_as_ddp_does(found: dict[str, Any], stage: int) -> None:
    assert found[f"apart {stage}"] == pytest.approx(found["apart ddp"], rel=1e-5)
    assert found["apart ddp"] != pytest.approx(found["whole ddp"], rel=1e-2)


def test_a_loss_through_both_engines_is_wrong_or_refused(found: dict[str, Any]) -> None:
    assert found["whole 1"] != pytest.approx(found["whole ddp"], rel=1e-2)
    assert "backward" in found["whole 0"]
