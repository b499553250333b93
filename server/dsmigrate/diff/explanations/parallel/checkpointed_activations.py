"""Activation checkpointing: the settings of a function that the script has to call."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.features import settings
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_SECTION = "activation_checkpointing"


@explanation(
    "DF805",
    "activation-checkpointing",
    summary="Settings of DeepSpeed's activation checkpointing change, for scripts that configure it.",
    why=(
        "`initialize` reads the section and never uses it. The values count when the script calls"
        " `deepspeed.checkpointing.configure`, for layers that run through `deepspeed.checkpointing.checkpoint`."
        " Models with `torch.utils.checkpoint`, as those of Hugging Face, do not know them. The numbers stay in any"
        " case."
    ),
    source=("deepspeed/runtime/activation_checkpointing/checkpointing.py:configure",),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "activation_checkpointing": {"cpu_checkpointing": true}}',
            "Scripts that call `deepspeed.checkpointing.configure` get other settings: `cpu_checkpointing` false → true"
            " (keeps the saved layer inputs in CPU memory until the backward pass needs them)",
            paths=(f"{_SECTION}.cpu_checkpointing",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "activation_checkpointing": {"number_checkpoints": 4}}',
            '{"train_batch_size": 8}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield which settings such a script gets now."""
    found = list(pair.live(_SECTION))
    if not found:
        return
    touched = {effect for change in found for effect in effects_of(pair, change.path)}
    yield pair.says(
        *(change.path for change in found),
        effects=tuple(effect for effect in Effect if effect in touched),
        severity=Severity.INFO,
        message=say(
            "Scripts that call `deepspeed.checkpointing.configure` get other settings: {settings}",
            settings=settings(pair, found),
        ),
        advice=say("With any other script, or with `torch.utils.checkpoint`, nothing changes"),
        brief=say("activation checkpointing, if the script configures it"),
    )
