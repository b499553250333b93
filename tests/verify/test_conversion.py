"""Conversions that `verify` makes itself."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dsmigrate.verify.conversion import convert
from dsmigrate.verify.model import VerifyError
from dsmigrate.verify.shadow import shadow
from tests.codemod.projects import ENGINE, ENTRY

EXAMPLES = Path(__file__).parents[2] / "examples"
HELPER = """
import torch


def distribute(model):
    return torch.nn.parallel.DistributedDataParallel(model)
"""
TRAIN = """
import torch
import torch.distributed as dist
from {module} import distribute

dist.init_process_group("nccl")
model = distribute(torch.nn.Linear(4, 1).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(2, 4).cuda()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def project(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def converted(script: Path, root: Path, place: Path, **asked: int) -> tuple[Path, tuple[str, ...]]:
    copy = shadow(root, place)
    return copy, convert(script, root, copy, {name.replace("_", "-"): value for name, value in asked.items()})


def test_the_copy_is_converted_at_the_stage_and_the_original_stays(tmp_path: Path) -> None:
    root = project(tmp_path / "project", {"train.py": (EXAMPLES / "spawn_regression.py").read_text()})
    copy, _ = converted(root / "train.py", root, tmp_path / "copy", zero_stage=3)
    assert "deepspeed.initialize" in (copy / "train.py").read_text()
    assert '"stage": 3' in (copy / "ds_config.json").read_text()
    assert sorted(path.name for path in root.iterdir()) == ["train.py"]
    assert "deepspeed" not in (root / "train.py").read_text()


def test_another_script_that_uses_a_changed_module_keeps_its_form(tmp_path: Path) -> None:
    other = "import engine\n\nengine.train_one_epoch(model, loader, optimizer)\n"
    files = {"train.py": dedent(ENTRY), "engine.py": dedent(ENGINE), "other.py": other}
    root = project(tmp_path / "project", files)
    copy, left = converted(root / "train.py", root, tmp_path / "copy")
    assert (copy / "other.py").read_text() == other
    assert "if ds_compat.is_engine(net):" in (copy / "engine.py").read_text()
    assert "loss.backward()" in (copy / "engine.py").read_text()
    assert (copy / "ds_compat.py").exists()
    assert not any("MG914" in line for line in left)


def test_another_script_that_needs_the_old_form_of_a_changed_module_is_named_and_no_hindrance(tmp_path: Path) -> None:
    train = TRAIN.format(module="helper")
    helper = HELPER.replace("    return ", "    model.double()\n    return ")
    root = project(tmp_path / "project", {"helper.py": helper, "train.py": train, "other.py": train})
    copy, left = converted(root / "train.py", root, tmp_path / "copy")
    assert "deepspeed" in (copy / "train.py").read_text()
    assert "DistributedDataParallel" not in (copy / "helper.py").read_text()
    assert (copy / "other.py").read_text() == train
    assert any("MG914" in line and "other.py" in line for line in left)


def test_a_module_beside_the_folder_of_the_script_is_converted_at_its_place(tmp_path: Path) -> None:
    files = {".git/HEAD": "", "lib/__init__.py": "", "lib/helper.py": HELPER}
    train = "import sys\nsys.path.insert(0, '.')\n" + TRAIN.format(module="lib.helper")
    root = project(tmp_path / "project", {**files, "tools/train.py": train})
    copy, _ = converted(root / "tools" / "train.py", root, tmp_path / "copy")
    changed = [str(file.relative_to(copy)) for file in copy.rglob("*.py") if "deepspeed" in file.read_text()]
    assert "lib/helper.py" in changed or "tools/train.py" in changed
    assert not (copy / "tools" / "tools").exists()
    assert not (copy / "tools" / "lib").exists()
    with pytest.raises(VerifyError, match=r"trains with .*lib/helper\.py, which is not below .*tools"):
        converted(root / "tools" / "train.py", root / "tools", tmp_path / "again")


def test_a_script_that_is_refused_is_said_with_the_reason(tmp_path: Path) -> None:
    text = TRAIN.format(module="helper").replace("optimizer.step()", "optimizer.step(lambda: loss)")
    root = project(tmp_path / "project", {"helper.py": HELPER, "train.py": text})
    with pytest.raises(VerifyError, match=r"train\.py is refused.*MG906 .*closure"):
        converted(root / "train.py", root, tmp_path / "copy")


def test_a_script_without_anything_to_convert_is_said(tmp_path: Path) -> None:
    root = project(tmp_path / "project", {"train.py": "import torch\n"})
    with pytest.raises(VerifyError, match=r"unchanged.*nothing of DistributedDataParallel"):
        converted(root / "train.py", root, tmp_path / "copy")
