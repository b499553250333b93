"""Files that another number of processes resumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from common import AFTER, BEFORE, Case, apart, ddp, engine, load, losses_apart, saved, train


def save() -> Iterator[Case]:
    """Files of the engine at each stage, and what the losses are behind them."""
    for stage in range(4):
        yield f"ZeRO {stage}", lambda s=stage: save_for_another(s)


def save_for_another(stage: int) -> dict[str, Any]:
    model, stepping = ddp("AdamW", "groups")
    train(model, stepping, BEFORE)
    wrapped, own = engine("AdamW", stage, "groups", before=saved(model, stepping))
    losses = train(wrapped, own, BEFORE)
    state = saved(wrapped, own)
    found = losses_apart(train(model, stepping, BEFORE), losses)
    expected = train(model, stepping, AFTER)
    if dist.get_rank() == 0:
        torch.save((state, expected), f"stage{stage}.pt")
    return {"as DDP": found}


def resume() -> Iterator[Case]:
    """The files resumed by another number of processes, at the stage that wrote them and at the next."""
    for stage in range(4):
        for other in (stage, (stage + 1) % 4):
            yield f"ZeRO {stage} to {other}", lambda s=stage, o=other: resume_from_another(s, o)


def resume_from_another(stage: int, other: int) -> dict[str, Any]:
    state, expected = torch.load(f"stage{stage}.pt", weights_only=True)
    wrapped, own = engine("AdamW", other, "groups")
    load(wrapped, own, state)
    same = apart(state, saved(wrapped, own))
    return {"saved at once": same, "losses": losses_apart(expected, train(wrapped, own, AFTER))}
