"""A script that quantizes a model that has its weights, with ``_init_group_wise_weight_quantization``."""

from __future__ import annotations

import contextlib

import torch
from torch import nn

from tests.e2e.situations.script import Config, pretend

WIDTH = 16


def run(config: Config) -> None:
    """Quantize the model and ask it once."""
    pretend("transformers.utils.generic", ContextManagers=contextlib.ExitStack)  # for ZeRO 3 only
    from deepspeed.inference.quantization.quantization import (  # noqa: PLC0415 - asks for transformers
        _init_group_wise_weight_quantization,
    )

    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)).half()
    with torch.no_grad():
        _init_group_wise_weight_quantization(model, config)(torch.ones(1, WIDTH, dtype=torch.half))
