"""Scripts that are verified, one for each case."""

from __future__ import annotations

CUDA_ONLY = """
import os
import torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

assert torch.cuda.is_available(), "this needs a GPU"
assert torch.accelerator.is_available() and torch.accelerator.device_count() == 2
assert str(torch.accelerator.current_accelerator()) == "cuda"
os.environ["MASTER_PORT"] = "29511"
dist.init_process_group("nccl", init_method="env://")
rank = dist.get_rank()
local_rank = rank % torch.cuda.device_count()
torch.cuda.set_device(local_rank)
torch.accelerator.set_device_index(local_rank)
assert torch.accelerator.current_device_index() == torch.cuda.current_device() == local_rank


@torch.jit.script
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * torch.ones(1)


torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()
model = DDP(model, device_ids=[local_rank], output_device=local_rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
stream, started, ended = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
data = torch.Generator().manual_seed(rank)
for step in range(6):
    started.record()
    x = torch.randn(8, 8, generator=data).pin_memory().cuda(non_blocking=True)
    with torch.cuda.stream(stream):
        y = torch.randint(0, 4, (8,), generator=data).to(rank, non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    weight = torch.ones(4, device=f"cuda:{local_rank}") * torch.zeros(1, device=torch.device("cuda", local_rank)).exp()
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        loss = F.cross_entropy(scaled(model(x).float()), y, weight=weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ended.record()
    torch.cuda.synchronize()
    print(step, loss.item(), torch.cuda.max_memory_allocated(), torch.cuda.get_device_name(0))
    assert started.elapsed_time(ended) > 0
"""
SPAWNING = """
import torch
import torch.multiprocessing as mp

def main(rank):
    raise ValueError(f"no data for {rank}")

if __name__ == "__main__":
    mp.spawn(main, nprocs=2)
"""
SHARED = """
import torch
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

def main(rank, model):
    torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", rank=rank, world_size=2)
    model.to(rank)
    model = DDP(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        optimizer.step()

if __name__ == "__main__":
    torch.manual_seed(0)
    mp.spawn(main, nprocs=2, args=(torch.nn.Linear(4, 1),))
"""
BARE = """
import os
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
if distributed:
    torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
if distributed:
    model = DDP(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    loss = model(torch.randn(6, 4)).square().mean()
    loss.backward()
    optimizer.step()
"""
HANGING = """
import os, pathlib, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)  # {mark}"], start_new_session=True)
pathlib.Path(f"{{os.getpid()}}.pid").touch(); time.sleep(3600)
"""
