"""Scripts of a project that take a checkpoint for a file, where it becomes a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import Change, Options, Status
from dsmigrate.migration.job import Job, run
from dsmigrate.migration.sets import reconcile
from tests.migration.test_sets import write

TRAIN = """
    import os, torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from common import restore, save
    {imports}
    dist.init_process_group("nccl")
    model = torch.nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = DistributedDataParallel(model)
    restore(model, optimizer)
    for x in torch.utils.data.DataLoader(range(8), batch_size=4):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    if dist.get_rank() == 0:
        save(model, optimizer)
    """
TAKES = " takes a checkpoint for a file: "
COMMON = """
    import torch

    def save(model, optimizer):
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "out/last.pt")

    def restore(model, optimizer):
        state = torch.load("out/last.pt")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    def weights():
        return torch.load("out/last.pt")["model"]
    """


def notes(folder: Path, files: dict[str, str], checkpoints: str = "engine") -> list[Change]:
    write(folder, {"train.py": TRAIN.format(imports=""), "common.py": COMMON, **files})
    job = Job(folder / "train.py", folder, Options(checkpoints=checkpoints), project=folder)
    (outcome,) = reconcile([run(job)])
    assert outcome.result.status is Status.CONVERTED
    return [note for note in outcome.result.notes if note.code == "MG637"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('import torch\nprint(torch.load("a/last.pt"))\n', f"2{TAKES}torch.load('a/last.pt')"),
        (
            'import os, torch\npath = os.path.join("out", "last.pt")\nif os.path.isfile(path):\n    pass\n',
            f"3{TAKES}os.path.isfile(path)",
        ),
        ('import shutil\nshutil.copy("out/last.pt", "/d")\n', f"2{TAKES}shutil.copy('out/last.pt', '/d')"),
        ('import cloud\ncloud.upload("out/last.pt")\n', f"2{TAKES}cloud.upload('out/last.pt')"),
        ('open("out/last.pt", "rb").read()\n', f"1{TAKES}open('out/last.pt', 'rb')"),
    ],
)  # fmt: skip
def test_a_script_that_uses_the_path_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    found = notes(tmp_path, {"tools/other.py": text})
    assert [note.message for note in found] == [f"tools/other.py:{said}"]


def test_what_a_shared_module_does_for_another_script_is_named_there(tmp_path: Path) -> None:
    found = notes(tmp_path, {"evaluate.py": "from common import weights\n\nprint(weights())\n"})
    line = COMMON.split("\n").index('        return torch.load("out/last.pt")["model"]')
    assert [note.message.partition(" ")[0] for note in found] == [f"common.py:{line}"]


@pytest.mark.parametrize(
    "text",
    [
        'import torch\nprint(torch.load("other.pt"))\n',
        'import torch\n\n\ndef never():\n    return torch.load("out/last.pt")\n',
        'import os\nprint(os.path.exists("out/last.pt"))\n',
    ],
)
def test_other_files_are_not(tmp_path: Path, text: str) -> None:
    assert not notes(tmp_path, {"other.py": text})


def test_files_that_stay_files_are_not(tmp_path: Path) -> None:
    assert not notes(tmp_path, {"other.py": 'import torch\ntorch.load("out/last.pt")\n'}, "files")


def test_a_script_that_stays_and_shares_the_save_still_writes_files(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": TRAIN.format(imports=""), "common.py": COMMON})
    other = "from common import save\n\nif __name__ == '__main__':\n    save(build(), make())\n"
    write(tmp_path, {"other.py": other})
    job = Job(tmp_path / "train.py", tmp_path, Options(checkpoints="engine"), project=tmp_path)
    (outcome,) = reconcile([run(job)])
    assert outcome.result.status is Status.CONVERTED
    common = next(one for one in outcome.modules if one.job.path.name == "common.py")
    assert b"    ds_compat.save_checkpoint({" in (common.result.new_source or b"")
