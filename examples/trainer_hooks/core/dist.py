import os

import torch
import torch.distributed as dist


def setup():
    cuda = torch.cuda.is_available()
    dist.init_process_group(backend="nccl" if cuda else "gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    if cuda:
        torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank) if cuda else torch.device("cpu")


def get_rank():
    return dist.get_rank()


def cleanup():
    dist.destroy_process_group()
