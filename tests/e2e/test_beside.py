"""A script that shares modules with a converted one and is not converted itself trains as before."""

from __future__ import annotations

import pytest

from .cases import Case
from .harness import EXAMPLES, Lab

pytestmark = [pytest.mark.e2e, pytest.mark.deepspeed, pytest.mark.xdist_group("training")]

CONVERTED = Case("two_entries-alone", "two_entries/pretrain.py")
LEFT = Case("two_entries-left", "two_entries/finetune.py")


def test_the_other_script_of_a_shared_package_trains_as_before(lab: Lab) -> None:
    before = lab.original(LEFT)
    folder = lab.place(LEFT, "two_entries-beside", lab.conversion(CONVERTED, 0))
    assert (folder / "finetune.py").read_bytes() == (EXAMPLES / LEFT.script).read_bytes()
    assert "ds_compat.is_engine(engine)" in (folder / "lab" / "stepper.py").read_text()
    after = lab.launch(LEFT, folder, LEFT.argv, "torch")
    assert after.succeeded, after.excerpt()
    assert after.readings == before.readings
