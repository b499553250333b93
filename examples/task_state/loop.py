from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


@dataclass
class RunState:
    task: Any
    optimizer: torch.optim.Optimizer
    scheduler: Any
    epoch: int = 0


def backward(total):
    total.backward()


def optimize(task, optimizer, total, max_norm=0.0):
    optimizer.zero_grad()
    backward(total)
    torch.nn.utils.clip_grad_norm_(task.net.parameters(), max_norm)
    optimizer.step()


def train_one_epoch(state, loader, device, update):
    state.task.train()
    for index, (inputs, target) in enumerate(loader):
        inputs, target = inputs.to(device), target.to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            total = state.task(inputs, target)
        update(state.optimizer, total)
        state.scheduler.step()
        if dist.get_rank() == 0:
            print(f"epoch {state.epoch} step {index} loss: {total.item():.9f}", flush=True)
