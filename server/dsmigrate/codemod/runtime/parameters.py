"""Parameters that deepspeed.initialize cannot send."""

from __future__ import annotations

from typing import Any

import deepspeed
import torch
import torch.distributed as dist


def broadcast_model(model: torch.nn.Module) -> None:
    """Send rank 0's weights and buffers to all ranks, as DDP did when it was made.

    Collective. Before deepspeed.initialize, where a copy of the model is made before that.
    """
    if not dist.is_initialized():
        deepspeed.init_distributed()
    for tensor in model.state_dict().values():
        if torch.is_tensor(tensor):
            data = tensor.detach().contiguous()
            if data.device.type == "cpu":
                data = data.to(deepspeed.get_accelerator().current_device_name())
            dist.broadcast(data, src=0)
            tensor.copy_(data)


def send_odd_parameters(model: torch.nn.Module) -> None:
    """Send rank 0's parameters that have no dimension, or are not contiguous. Before deepspeed.initialize.

    Collective. DeepSpeed 0.19.8 sends parameters as bytes, for which torch or NCCL refuses these; ``ds_optim_param``
    makes it leave them out. At ZeRO 3 partitioning stops at them too.
    """
    if not dist.is_initialized():
        deepspeed.init_distributed()
    for parameter in model.parameters():
        if parameter.dim() == 0 or parameter.stride(-1) != 1 or not parameter.is_contiguous():
            data = parameter.data.contiguous()
            if data.device.type == "cpu":
                data = data.to(deepspeed.get_accelerator().current_device_name())
            dist.broadcast(data, src=0)
            parameter.data.copy_(data)
            odd: Any = parameter
            odd.ds_optim_param = True
