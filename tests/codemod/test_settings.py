"""Where scripts take their settings from: every number comes to the engine from there, and none is guessed."""

from __future__ import annotations

import pytest

from tests.codemod.checks import Migrated, migrate

SCRIPT = """
import os
{imports}

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from dataset import Digits

{head}
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dataset = Digits("train")
    loader = DataLoader(dataset, batch_size={batch}, sampler=DistributedSampler(dataset))
    model = DDP(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr={lr})
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda()) / {accum}
        loss.backward()
        if (i + 1) % {accum} == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), {clip})
            optimizer.step()
            optimizer.zero_grad()


{start}
"""
MAIN = 'if __name__ == "__main__":\n    main()'
FIELDS = "    lr: float = 1e-3\n    batch_size: int = 32\n    clip: float = 0.5\n    accum: int = 4\n"
DATACLASS = f"@dataclass\nclass Config:\n{FIELDS}\n\ndef main():\n    "
NAMES = ("lr", "batch_size", "clip", "accum")
IN_ARGS = tuple(f"args.{name}" for name in NAMES)

# imports, head (ends with the first lines of the function), names of (lr, batch, clip, accum), start
SOURCES: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "a YAML file": (
        "import yaml",
        'def main():\n    with open("config.yaml") as f:\n        cfg = yaml.safe_load(f)',
        ('cfg["optim"]["lr"]', 'cfg["batch_size"]', 'cfg["clip"]', 'cfg["accum"]'),
        MAIN,
    ),
    "a YAML file with defaults": (
        "import yaml",
        'def main():\n    cfg = yaml.safe_load(open("config.yaml"))',
        ('cfg.get("lr", 1e-3)', 'cfg.get("batch", 32)', 'cfg.get("clip", 1.0)', 'cfg.get("accum", 2)'),
        MAIN,
    ),
    "OmegaConf": (
        "from omegaconf import OmegaConf",
        'def main():\n    cfg = OmegaConf.merge(OmegaConf.load("config.yaml"), OmegaConf.from_cli())',
        ("cfg.optim.lr", "cfg.data.batch_size", "cfg.optim.clip", "cfg.optim.accum"),
        MAIN,
    ),
    "hydra": (
        "import hydra\nfrom omegaconf import DictConfig",
        '@hydra.main(version_base=None, config_path="conf", config_name="config")\ndef main(cfg: DictConfig) -> None:',
        ("cfg.optim.lr", "cfg.data.batch_size", "cfg.optim.clip", "cfg.optim.accum"),
        MAIN,
    ),
    "absl flags": (
        "from absl import app, flags",
        (
            'FLAGS = flags.FLAGS\nflags.DEFINE_float("lr", 1e-3, "")\nflags.DEFINE_integer("batch_size", 32, "")\n'
            'flags.DEFINE_float("clip", 0.5, "clip")\nflags.DEFINE_integer("accum", 4, "micro-batches")\n\n'
            "def main(argv):\n    del argv"
        ),
        tuple(f"FLAGS.{name}" for name in NAMES),
        'if __name__ == "__main__":\n    app.run(main)',
    ),
    "click": (
        "import click",
        (
            '@click.command()\n@click.option("--lr", default=1e-3)\n@click.option("--batch-size", default=32)\n'
            '@click.option("--clip", default=0.5)\n@click.option("--accum", default=4)\n'
            "def main(lr, batch_size, clip, accum):"
        ),
        NAMES,
        MAIN,
    ),
    "fire": (
        "import fire",
        "def main(lr=1e-3, batch_size=32, clip=0.5, accum=4):",
        NAMES,
        'if __name__ == "__main__":\n    fire.Fire(main)',
    ),
    "typer": (
        "import typer",
        "def main(lr: float = 1e-3, batch_size: int = 32, clip: float = 0.5, accum: int = 4):",
        NAMES,
        'if __name__ == "__main__":\n    typer.run(main)',
    ),
    "HfArgumentParser": (
        "from dataclasses import dataclass\nfrom transformers import HfArgumentParser",
        DATACLASS + "(args,) = HfArgumentParser(Config).parse_args_into_dataclasses()",
        IN_ARGS,
        MAIN,
    ),
    "tyro": ("from dataclasses import dataclass\nimport tyro", DATACLASS + "args = tyro.cli(Config)", IN_ARGS, MAIN),
    "simple-parsing": (
        "from dataclasses import dataclass\nimport simple_parsing",
        DATACLASS + "args = simple_parsing.parse(Config)",
        IN_ARGS,
        MAIN,
    ),
    "a dataclass": ("from dataclasses import dataclass", DATACLASS + "args = Config()", IN_ARGS, MAIN),
    "argparse in another module": (
        "from options import get_args",
        "def main():\n    args = get_args()",
        IN_ARGS,
        MAIN,
    ),
    "a module": (
        "import config\nfrom config import CFG",
        "def main():",
        ("config.LR", "CFG.batch_size", 'CFG["clip"]', "config.ACCUM"),
        MAIN,
    ),
    "the environment": (
        "",
        (
            'LR = float(os.environ.get("LR", "1e-3"))\nBATCH = int(os.environ.get("BATCH", 32))\n'
            'CLIP = float(os.getenv("CLIP", "0.5"))\nACCUM = int(os.getenv("ACCUM", 2))\n\ndef main():'
        ),
        ("LR", "BATCH", "CLIP", "ACCUM"),
        MAIN,
    ),
    "argparse with other defaults later": (
        "import argparse",
        (
            "def main():\n    parser = argparse.ArgumentParser()\n"
            '    parser.add_argument("--lr", type=float, default=1e-3)\n'
            '    parser.add_argument("--batch_size", type=int, default=32)\n'
            '    parser.add_argument("--clip", type=float, default=0.5)\n'
            '    parser.add_argument("--accum", type=int, default=4)\n'
            "    parser.set_defaults(clip=2.0)\n    args = parser.parse_args()\n    args.batch_size //= 2"
        ),
        IN_ARGS,
        MAIN,
    ),
}


CONSTANT = "a dataclass"
"""No command line and no file can change what stands there."""


def converted(source: str, **options: str) -> tuple[Migrated, tuple[str, ...]]:
    imports, head, names, start = SOURCES[source]
    lr, batch, clip, accum = names
    text = SCRIPT.format(imports=imports, head=head, lr=lr, batch=batch, clip=clip, accum=accum, start=start)
    migrated = migrate(text, **options)
    assert migrated.result.new_source is not None, migrated.told()
    return migrated, names


@pytest.mark.parametrize("source", SOURCES)
def test_batch_size_and_limit_come_from_where_the_script_has_them(source: str) -> None:
    migrated, (lr, batch, clip, accum) = converted(source)
    if source == CONSTANT:
        assert (migrated.config["train_micro_batch_size_per_gpu"], migrated.config["gradient_clipping"]) == (32, 0.5)
    else:
        assert f"train_micro_batch_size_per_gpu={batch}," in migrated.code
        assert f"gradient_clipping={clip}" in migrated.code
    assert f"lr={lr})" in migrated.code
    assert f"/ {accum}\n" in migrated.code
    assert f"% {accum} == 0:" in migrated.code
    assert migrated.config["gradient_accumulation_steps"] == 1


@pytest.mark.parametrize("source", SOURCES)
def test_the_learning_rate_comes_from_there_too_when_the_optimizer_moves_into_the_config(source: str) -> None:
    migrated, (lr, *_) = converted(source, optimizer="config")
    if source == CONSTANT:
        assert migrated.config["optimizer"]["params"]["lr"] == 1e-3
    else:
        assert f'optimizer={{"params": {{"lr": {lr}}}}}' in migrated.code.replace("0.001", "1e-3")


def test_settings_in_cells() -> None:
    """The jupytext form: cells are separated by comments and run from top to bottom."""
    cells = ["# %% [markdown]\n# # Train", "# %%\nlr = 1e-3\nbatch = 16\nclip = 0.5\naccum = 2", "# %%\nif True:"]
    names = {"lr": "lr", "batch": "batch", "clip": "clip", "accum": "accum"}
    migrated = migrate(SCRIPT.format(imports="", head="\n\n".join(cells), start="", **names))
    assert migrated.config["train_micro_batch_size_per_gpu"] == 16
    assert migrated.config["gradient_clipping"] == 0.5
    for cell in cells:
        assert cell in migrated.code


def test_a_setting_that_another_cell_changes_has_the_later_value() -> None:
    head = "# %%\nclip = 0.5\n\n# %%\nclip = 2.0\n\n# %%\nif True:"
    migrated = migrate(SCRIPT.format(imports="", head=head, lr="1e-3", batch="16", clip="clip", accum="2", start=""))
    assert migrated.config["gradient_clipping"] == 2.0
