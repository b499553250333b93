"""Train a small recurrent tagger; what a run consists of is an object that is handed around."""
import os
import sys
from functools import partial

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from data import Rhythms
from loop import RunState, optimize, train_one_epoch
from task import TaggingTask


def main(epochs):
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"cuda:{local_rank}" if use_cuda else "cpu")
    torch.manual_seed(23)

    task = TaggingTask(features=6, hidden=24, tags=4).to(device)
    decay = [p for name, p in task.net.named_parameters() if "bias" not in name]
    rest = [p for name, p in task.net.named_parameters() if "bias" in name]
    optimizer = torch.optim.SGD(
        [{"params": decay, "weight_decay": 1e-3}, {"params": rest, "weight_decay": 0.0}], lr=0.2, momentum=0.9
    )
    task.distribute(device_ids=[local_rank] if use_cuda else None)

    dataset = Rhythms()
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=6, sampler=sampler, drop_last=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    state = RunState(task, optimizer=optimizer, scheduler=scheduler)
    update = partial(optimize, task, max_norm=0.8)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(state, loader, device, update)
        state.epoch += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main(epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 3)
