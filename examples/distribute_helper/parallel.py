"""Everything distributed: set-up, the wrap, and small helpers."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(opt):
    opt.local_rank = int(os.environ.get("LOCAL_RANK", opt.local_rank))
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
    if torch.cuda.is_available():
        torch.cuda.set_device(opt.local_rank)
        return torch.device("cuda", opt.local_rank)
    return torch.device("cpu")


def distribute(model, device):
    model = model.to(device)
    return DDP(model, device_ids=[device.index] if device.type == "cuda" else None)


def unwrap(model):
    return model.module if isinstance(model, DDP) else model


def rank0():
    return dist.get_rank() == 0


def reduce_dict(input_dict):
    """Average the values of a dictionary over all processes."""
    names = sorted(input_dict)
    with torch.no_grad():
        values = torch.stack([input_dict[name] for name in names])
        dist.all_reduce(values)
        values /= dist.get_world_size()
    return dict(zip(names, values))
