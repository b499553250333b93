"""A script that asks for batches of so many tokens: the helper of dynamic batching analyses the data set by itself."""

from __future__ import annotations

import torch
from deepspeed.runtime.data_pipeline.data_sampling.variable_batch_size_and_lr import (
    get_dataloader_and_lr_scheduler_for_variable_batch_size_deepspeed as packed,
)

from tests.e2e.situations.script import Config, engine, train

LENGTHS = (3, 1, 2, 4, 1, 2, 3, 1)
WIDTH = 4


def run(config: Config) -> None:
    """Train on two batches."""
    samples = [torch.ones(length, WIDTH) for length in LENGTHS]
    built = engine(config, torch.nn.Linear(WIDTH, 2))
    loader, scheduler, _ = packed(
        samples,
        built,
        dataloader_collate_fn=list,
        batch_seqlens_fn=lambda batch: torch.tensor([len(sample) for sample in batch]),
    )
    for _, batch in zip(range(2), loader, strict=False):
        train(built, torch.cat(batch))
        scheduler.step()
