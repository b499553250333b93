"""Trains a small model under one config and prints the loss of every optimizer step, over all ranks.

Usage, once for each rank: ``python diff_training_script.py CONFIG``. The samples of an optimizer step are the same for
every config with the same effective batch, however it is cut into micro-batches and ranks. It is laid out so that
what a config changes shows: gradients above and below 1, weights that a decay moves, a layer that is partitioned.
"""

from __future__ import annotations

import json
import sys

import deepspeed
import torch
from torch import nn
from torch.nn.functional import mse_loss

STEPS = 8
WIDTH = 16


def model() -> nn.Module:
    """The same weights in every run."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def main() -> None:
    """Train, and print the losses as JSON."""
    deepspeed.init_distributed("gloo")
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net = model()
    engine, _, _, _ = deepspeed.initialize(
        model=net,
        model_parameters=net.parameters(),
        config=sys.argv[1],
    )
    kind = next(iter(engine.module.parameters())).dtype
    micro, passes = engine.train_micro_batch_size_per_gpu(), engine.gradient_accumulation_steps()
    batch = micro * passes * ranks
    chance = torch.Generator().manual_seed(2)
    inputs = torch.randn(STEPS * batch, WIDTH, generator=chance)
    targets = inputs.pow(2).sum(1, keepdim=True) / 4 + torch.randn(STEPS * batch, 1, generator=chance)
    losses = []
    for step in range(STEPS):
        total = torch.zeros(())
        for part in range(passes):
            start = step * batch + (part * ranks + rank) * micro
            output = engine(inputs[start : start + micro].to(kind))
            loss = mse_loss(output.float(), targets[start : start + micro])
            engine.backward(loss)
            engine.step()
            total += loss.detach() / passes
        torch.distributed.all_reduce(total)
        losses.append(float(total) / ranks)
    if rank == 0:
        print("losses", json.dumps(losses))


if __name__ == "__main__":
    main()
