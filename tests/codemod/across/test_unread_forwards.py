"""Files without a word of training that run the model beside an autocast region."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dsmigrate.codemod.model import Kind, Options
from dsmigrate.migration.job import Job, run

ENTRY = """
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.nn.parallel import DistributedDataParallel

    from extras import Consistency, consistency, penalty, spread

    def main():
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        criterion = Consistency(model)
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                out = model(x)
                inside = 0.0
            outside = 0.0
            loss = F.cross_entropy(out.float(), y) + inside + outside
            loss.backward()
            optimizer.step()

    main()
    """
EXTRAS = """
    import torch.nn.functional as F

    def consistency(net, x, out):
        return F.mse_loss(net(x + 0.1), out.float())

    def spread(x, out, *, net):
        return consistency(net, x, out)

    def penalty(net, out):
        return sum(p.pow(2).sum() for p in net.parameters()) + out.mean()

    class Consistency:
        def __init__(self, net):
            self.net = net

        def __call__(self, x, out):
            return F.mse_loss(self.net(x), out.float())
    """
LOOP = """
    def finish(optimizer):
        optimizer.step()
    """
RUNS = ["consistency(model, x, out)", "spread(x, out, net=model)", "criterion(x, out)", "Consistency(model)(x, out)"]


def _said(folder: Path, call: str, place: str, entry: str = ENTRY) -> bool:
    source = dedent(entry).lstrip("\n").replace(f"{place} = 0.0", f"{place} = {call}")
    for name, text in (("train.py", source), ("extras.py", dedent(EXTRAS)), ("loop.py", dedent(LOOP))):
        (folder / name).write_text(text)
    result = run(Job(folder / "train.py", folder, Options(), project=folder)).result
    lines = [c.line for c in result.changes if c.code == "MG307" and c.kind is Kind.TODO]
    assert any(c.code == "MG301" for c in result.changes)
    assert all(f"{place} = {call}" in source.splitlines()[line - 1] for line in lines)
    return bool(lines)


@pytest.mark.parametrize("call", RUNS)
def test_a_file_that_is_not_looked_at_runs_the_model_outside_of_the_region(tmp_path: Path, call: str) -> None:
    assert _said(tmp_path, call, "outside")


@pytest.mark.parametrize("call", RUNS)
def test_within_the_region_it_runs_as_before(tmp_path: Path, call: str) -> None:
    assert not _said(tmp_path, call, "inside")


@pytest.mark.parametrize("call", ["penalty(model, out)", "consistency(model.module, x, out)", "F.relu(out).sum()"])
def test_what_does_not_run_the_engine_stays(tmp_path: Path, call: str) -> None:
    assert not _said(tmp_path, call, "outside")


def test_a_training_of_several_files_is_asked_too(tmp_path: Path) -> None:
    entry = ENTRY.replace("optimizer.step()", "finish(optimizer)").replace(
        "    def main", "    from loop import finish\n\n    def main"
    )
    assert _said(tmp_path, RUNS[0], "outside", entry)
