import os
import random

import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import TensorDataset


def init_distributed(args):
    args.local_rank = int(os.environ.get("LOCAL_RANK", args.local_rank))
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(args.local_rank)
    torch.distributed.init_process_group(backend="nccl" if gpu else "gloo")
    return torch.device("cuda", args.local_rank) if gpu else torch.device("cpu")


def set_seed(args):
    random.seed(args.seed)
    torch.manual_seed(args.seed)


def token_data(n=60, length=8):
    g = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 30, (n, length), generator=g)
    return TensorDataset(ids, (ids + ids.roll(1, 1)) % 4)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def factor(step):
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        return max(0.0, (num_training_steps - step) / max(1, num_training_steps - num_warmup_steps))

    return LambdaLR(optimizer, factor)
