"""Communication hooks and sharded optimizers in modules of their own."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.across.together import convert, migrate

ENTRY = """
    import argparse

    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    from parts import build

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--fp16-hook", action="store_true")
        parser.add_argument("--comm-hook", default="none")
        args = parser.parse_args()
        dist.init_process_group("nccl")
        model = build.model(args)
        optimizer = build.optimizer(model)
        for x, y in build.loader():
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    main()
    """
BUILD = """
    import torch
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    from .compression import compress

    def model(cfg):
        net = torch.nn.Linear(4, 4).cuda()
        ddp = DistributedDataParallel(net)
        {registration}
        return ddp

    def optimizer(model):
        groups = [{{"params": [p]}} for p in model.parameters()]
        made = ZeroRedundancyOptimizer(groups[0]["params"], optimizer_class=torch.optim.AdamW, lr=0.1)
        for group in groups[1:]:
            made.add_param_group(group)
        return made

    def loader():
        return torch.utils.data.DataLoader([], batch_size=4)
    """
COMPRESSION = """
    from torch.distributed.algorithms.ddp_comm_hooks import default as comm_hooks

    def compress(ddp, kind):
        if kind == "half":
            ddp.register_comm_hook(state=None, hook=comm_hooks.fp16_compress_hook)
    """
HERE = (
    "if cfg.fp16_hook:\n            from torch.distributed.algorithms.ddp_comm_hooks import default as comm_hooks\n\n"
    "            ddp.register_comm_hook(state=None, hook=comm_hooks.fp16_compress_hook)"
)


@pytest.mark.parametrize(
    ("registration", "path", "expression"),
    [
        (HERE, "parts/build.py", '"fp16" if args.fp16_hook else None'),
        ("compress(ddp, cfg.comm_hook)", "parts/compression.py", '"fp16" if args.comm_hook == "half" else None'),
    ],
)
def test_a_hook_of_another_module_follows_the_option(registration: str, path: str, expression: str) -> None:
    files = {
        "train.py": ENTRY,
        "parts/__init__.py": "",
        "parts/build.py": BUILD.format(registration=registration),
        "parts/compression.py": COMPRESSION,
    }
    project = convert(files)
    assert f'ds_config["communication_data_type"] = {expression}' in project.after("train.py"), project.told()
    assert "register_comm_hook(" not in project.after(path)
    config = project.result.entry.config
    assert config is not None
    assert config["communication_data_type"] is None
    assert config["zero_optimization"] == {"stage": 1}


def test_the_workaround_for_groups_of_a_sharded_optimizer_is_in_time() -> None:
    files = {
        "train.py": ENTRY,
        "parts/__init__.py": "",
        "parts/build.py": BUILD.format(registration="pass"),
        "parts/compression.py": COMPRESSION,
    }
    project = convert(files)
    assert 'made = torch.optim.AdamW(groups[0]["params"], lr=0.1)' in project.after("parts/build.py")
    assert "ZeroRedundancyOptimizer" not in project.after("parts/build.py")
    assert project.result.entry.status is Status.CONVERTED, project.told()
    assert not [c for r in project.result.modules.values() for c in r.changes if c.kind is Kind.TODO]


def test_a_hook_of_its_own_in_another_module_is_refused_there() -> None:
    own = COMPRESSION.replace("comm_hooks.fp16_compress_hook", "average") + (
        "\n    def average(state, bucket):\n        return bucket.buffer()\n"
    )
    files = {
        "train.py": ENTRY,
        "parts/__init__.py": "",
        "parts/build.py": BUILD.format(registration='compress(ddp, "half")'),
        "parts/compression.py": own,
    }
    project = migrate(files)
    assert project is not None
    assert project.result.entry.status is Status.REFUSED
    assert "parts/compression.py" in project.told()
    assert "average" in project.told()
