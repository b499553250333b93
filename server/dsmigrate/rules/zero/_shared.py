"""What ZeRO makes of a file: keys of this release, offload, ZenFlow."""

from __future__ import annotations

from collections.abc import Iterable

from dsmigrate.document import Object
from dsmigrate.knowledge import Status
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry

ZERO = "zero_optimization"
STAGE = f"{ZERO}.stage"
OPTIMIZER_DEVICE = f"{ZERO}.offload_optimizer.device"
PARAM_DEVICE = f"{ZERO}.offload_param.device"
ZENFLOW = f"{ZERO}.zenflow"


def given(context: Context, path: str) -> Entry | None:
    """Return the member that gives a key which this release reads; None for none."""
    entry = context.entry(path)
    reads = entry is not None and entry.key is not None and entry.key.status in {Status.PRESENT, Status.DEPRECATED}
    return entry if reads else None


def switched_on(context: Context, path: str) -> Entry | None:
    """Return the member that switches a key on; None when it is off, left out or unknown."""
    entry = given(context, path)
    return entry if entry is not None and context.is_on(path) else None


def switched_off(context: Context, path: str) -> Entry | None:
    """Return the member that switches a key off; None when it is on, left out or unknown."""
    entry = given(context, path)
    return entry if entry is not None and context.raw(path) is not None and context.is_on(path) is False else None


def section(context: Context, path: str) -> Entry | None:
    """Return the member that gives a section as an object, be it empty."""
    entry = given(context, path)
    return entry if entry is not None and isinstance(entry.node, Object) else None


def offloads_optimizer(context: Context) -> bool:
    """Return whether the optimizer states are known to leave the GPU."""
    return context.device("offload_optimizer") in {"cpu", "nvme"}


def place(context: Context, path: str, around: str) -> str:
    """Return ``path`` when the file gives it, else the section ``around``: where a finding belongs."""
    return path if context.has(path) else around


def alternatives(values: Iterable[object]) -> str:
    """Return values as JSON, joined by "or"."""
    words = [f"`{json_text(value)}`" for value in values]
    return (
        words[0]
        if len(words) == 1
        else say("{words} or {words_2}", words=say(", ").join(words[:-1]), words_2=words[-1])
    )


def gigabytes(count: float) -> str:
    """Return bytes as a message shows them."""
    return (
        say("{number} GB", number=f"{count / 1e9:.3g}")
        if count >= 1e8
        else say("{number} MB", number=f"{count / 1e6:.3g}")
    )


def is_bf16_optimizer(context: Context) -> bool:
    """Return whether stage 1 is run by ``BF16_Optimizer``, which skips the checks of ZeRO's own optimizer."""
    accumulation = context.value("data_types.grad_accum_dtype")
    return (
        context.stage == 1
        and bool(context.is_on("bf16.enabled"))
        and accumulation in ("fp32", "float32", "float", "torch.float32")
        and not offloads_optimizer(context)
    )
