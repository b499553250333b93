"""ZeRO in a few words: the stage, and what is kept outside of the GPU."""

from __future__ import annotations

from typing import Literal

from dsmigrate.languages import mark, say
from dsmigrate.rules.context import Context

Part = Literal["offload_optimizer", "offload_param"]
_PARTS: tuple[tuple[Part, str], ...] = (("offload_optimizer", mark("optimizer")), ("offload_param", mark("parameters")))


def stage_text(context: Context) -> str:
    """Return the stage: "ZeRO-3", "ZeRO off", "ZeRO" where it is open."""
    stage = context.stage
    if stage is None:
        return "ZeRO"
    return f"ZeRO-{stage}" if stage else say("ZeRO off")


def offloads(context: Context) -> tuple[tuple[str, str], ...]:
    """Return what really leaves the GPU, and where to: ("optimizer", "cpu").

    Below stage 3 parameters stay whatever the file says, and the optimizer goes to the CPU where it says NVMe.
    """
    stage = context.stage
    found = []
    for part, name in _PARTS:
        device = context.device(part)
        if device in {None, "none"} or not stage or (part == "offload_param" and stage != 3):
            continue
        found.append((name, "cpu" if stage < 3 else str(device)))
    return tuple(found)
