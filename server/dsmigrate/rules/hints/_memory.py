"""How many bytes the training state takes on one GPU, by DeepSpeed's own estimate."""

from __future__ import annotations

from dsmigrate.languages import say
from dsmigrate.rules.model import Facts

_HALF = 2
"""Bytes of a 16-bit weight."""
ROOM = 0.5
"""The share of a GPU that the training state may take; activations and buffers need the rest."""


def state_bytes(facts: Facts, stage: int) -> float | None:
    """Return bytes of weights, gradients and Adam states on one GPU without offload; None without facts.

    As ``estimate_zero2_model_states_mem_needs`` and its like for stage 3 have it: 2 bytes for a 16-bit weight, 16 for
    gradient, master weight and Adam, sharded by stage; stage 1 keeps the gradients whole. Weights that do not train are
    sharded at stage 3 alone.
    """
    parameters, world, model = facts.parameters, facts.world_size, facts.model
    if not parameters or not world:
        return None
    whole = {0: 18.0, 1: 4.0, 2: 2.0, 3: 0.0}[stage]
    frozen = 0.0 if model is None else sum(model.frozen) * (_HALF if model.frozen_width is None else model.frozen_width)
    return parameters * (whole + (18 - whole) / world) + frozen / (world if stage == 3 else 1)


def fits(facts: Facts, stage: int) -> bool:
    """Return whether the training state leaves enough room on one GPU; False without facts."""
    needed = state_bytes(facts, stage)
    return needed is not None and facts.gpu_memory is not None and needed <= ROOM * facts.gpu_memory


def in_gigabytes(amount: float) -> str:
    """Return bytes as text in GB, with one decimal below ten."""
    gigabytes = amount / 1e9
    return (
        say("{gigabytes} GB", gigabytes=f"{gigabytes:.1f}")
        if gigabytes < 10
        else say("{gigabytes} GB", gigabytes=f"{gigabytes:.0f}")
    )
