"""CUDA_VISIBLE_DEVICES that a module of the script sets above its own import of torch."""

from __future__ import annotations

from tests.codemod.across.together import ENGINE, ENTRY, convert

CHOOSES = f"""
    import os

    os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"
    import torch
    {ENGINE}"""


def test_a_module_may_set_it_when_deepspeed_is_imported_already() -> None:
    entry = ENTRY.replace("import engine\n    import torch", "import torch\n    import engine", 1)
    project = convert({"train.py": entry, "engine.py": CHOOSES})
    text = project.after("train.py")
    assert text.index("import deepspeed") < text.index("import engine")
    assert "MG225" in {change.code for change in project.result.modules["engine.py"].changes}
