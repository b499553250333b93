"""A data set with the files of its analysis, from which the engine makes a loader with a curriculum."""

from __future__ import annotations

import numpy as np
import torch
from deepspeed.runtime.data_pipeline.data_sampling.utils import (
    close_mmap_dataset_builder,
    create_mmap_dataset_builder,
)

from tests.e2e.situations.script import Config, engine, train

SAMPLES = 16


def run(config: Config) -> None:
    """Write the analysis: sample i is as difficult as i; then train on three batches."""
    write("index_to_sample", [[sample] for sample in range(SAMPLES)])
    write("index_to_metric", [[sample] for sample in range(SAMPLES)])
    built = engine(config, torch.nn.Linear(4, 2))
    loader = iter(built.deepspeed_io([torch.full((4,), float(sample)) for sample in range(SAMPLES)]))
    for _ in range(3):
        train(built, next(loader))


def write(name: str, rows: list[list[int]]) -> None:
    """Write rows of numbers as the data analyzer does."""
    builder = create_mmap_dataset_builder(name, np.int64)
    for row in rows:
        builder.add_item_numpy(np.array(row, dtype=np.int64))
    close_mmap_dataset_builder(builder, name)
