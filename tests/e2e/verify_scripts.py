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
TRAINING = """
import os
import random
import time
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        {forward}
        return self.last(x)


net = Net()
{weights}
model = DDP(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
data = torch.randn(64, 8, generator=torch.Generator().manual_seed(rank))
order = list(range(8))
for epoch in range(2):
    {order}
    for index in order:
        x = data[8 * index : 8 * index + 8]
        {inputs}
        {rate}
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
"""
PLAIN = dict.fromkeys(("weights", "order", "inputs", "rate", "forward"), "")
NOISES = {
    "weights from the clock": {"weights": "torch.manual_seed(time.time_ns() % 2**31 + 0 * rank); net = Net()"},
    "order from the system": {"order": "random.SystemRandom().shuffle(order)"},
    "numpy without a seed": {
        "inputs": "x = x + torch.from_numpy(np.random.default_rng().normal(size=x.shape)).float()"
    },
    "a rate that follows the clock": {
        "rate": "optimizer.param_groups[0]['lr'] = 0.01 + 0.05 * (time.perf_counter() % 1)"
    },
    "dropout of another generator": {
        "forward": "x = x * torch.from_numpy(np.random.default_rng().random(x.shape) > 0.3).float()"
    },
}
"""What takes the place of nothing in TRAINING, so that no two runs are the same."""

_BRANCHING = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(8, 1)
        self.left, self.right = torch.nn.Linear(8, 1), torch.nn.Linear(8, 1)

    def forward(self, x):
        {branch}


model = DDP(Net(), find_unused_parameters=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
data = torch.Generator().manual_seed(rank)
for step in range(8):
    x = torch.randn(8, 8, generator=data)
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
"""
BRANCHES = {
    "unused-parameters": _BRANCHING.format(branch="return self.base(x) + self.left(x)"),
    "data-dependent-branch": _BRANCHING.format(
        branch="return self.base(x) + (self.left(x) if float(x.sum()) > 0 else self.right(x))"
    ),
}
_DS = """
import os, signal, time
import deepspeed, torch
import torch.distributed as dist

deepspeed.init_distributed("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
config = {{"train_micro_batch_size_per_gpu": 8, "gradient_clipping": 0.0, "zero_allow_untested_optimizer": True}}
model, optimizer, _, _ = deepspeed.initialize(model=net, optimizer=optimizer, config=config)
data = torch.Generator().manual_seed(rank)
for step in range(8):
    x = torch.randn(8, 8, generator=data)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    model.backward(loss)
    model.step()
    {after}
"""
_DDP = """
import os, signal, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.Generator().manual_seed(rank)
for step in range(8):
    x = torch.randn(8, 8, generator=data)
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    {after}
"""
_RAISES = "if rank == 1 and step == 3: raise ValueError('a bad sample')"
_KILLED = "if rank == 1 and step == 3: os.kill(os.getpid(), signal.SIGKILL)"
_HANGS = "if rank == 1 and step == 3: dist.barrier()"
_DISK = "torch.save({'step': step}, '/dev/full')"


def _both(original: str, converted: str) -> str:
    return f"{_DDP.format(after=original)}# CONVERTED{_DS.format(after=converted)}"


FAILURES = {
    "rank 1 raises": (_both("", _RAISES), 1, ("rank 1 first: ValueError: a bad sample",)),
    "rank 1 of the original raises": (_both(_RAISES, ""), 2, ("rank 1 first: ValueError: a bad sample",)),
    "rank 1 is killed": (_both("", _KILLED), 1, ("rank 1 first: it is killed by SIGKILL",)),
    "a hang": (_both("", _HANGS), 1, ("the conversion hangs after", "rank 0: ", "rank 1: ", "inside of barrier")),
    "a hang of the original": (
        _both(_HANGS, ""),
        2,
        ("the original hangs after", "rank 0: ", "rank 1: ", "inside of barrier"),
    ),
    "a full disk": (_both("", _DISK), 2, ("the disk is full, which says nothing of the conversion",)),
    "a full disk of the original": (_both(_DISK, ""), 2, ("the original itself finds the disk full",)),
}
"""Scripts, the exit code, and what has to be said; the conversion follows the original."""

RESUMES_NOTHING = _DDP.format(after="torch.save({'step': step, 'model': model.module.state_dict()}, 'last.pt')")
"""It takes no notice of the arguments of its second start."""
