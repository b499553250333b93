import os

import torch
import torch.distributed as dist


def start():
    """Join the process group; gives this process's device."""
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    return device


def is_first():
    return not dist.is_initialized() or dist.get_rank() == 0


def finish():
    dist.barrier()
    dist.destroy_process_group()
