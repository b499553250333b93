"""Which trainer of TRL a script makes, and whether TRL makes an engine of a frozen model beside the one that trains."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dsmigrate.rules import Arguments

_IMPORTED = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+trl\b")
_TRAINER = re.compile(r"\b((?:DPO|KTO|BCO|GKD|GRPO)Trainer)[ \t]*\(")
_ADAPTER = re.compile(r"(?i)peft|lora")
"""What a script holds that may train an adapter: the model without it is the frozen one then."""
_COMMANDS = {"dpo": "DPOTrainer", "kto": "KTOTrainer", "grpo": "GRPOTrainer"}
_PRECOMPUTED = "precompute_ref_log_probs"


def of_script(given: Arguments, text: str) -> Arguments:
    """Return the arguments with the trainer that a script makes for them, the same if that is none of TRL's."""
    trainers = set(_TRAINER.findall(text)) if _IMPORTED.search(text) else set()
    if len(trainers) != 1:
        return given
    return _of_trainer(given, trainers.pop(), adapter=_ADAPTER.search(text) is not None)


def of_command(given: Arguments, command: str) -> Arguments:
    """Return the arguments of a ``trl`` command with its trainer, the same for a command without one."""
    trainer = _COMMANDS.get(command)
    return given if trainer is None else _of_trainer(given, trainer, adapter="use_peft" in given.values)


def _of_trainer(given: Arguments, trainer: str, *, adapter: bool) -> Arguments:
    frozen = not adapter and not given.is_on(_PRECOMPUTED)
    return replace(given, trainer=trainer, frozen=frozen and (trainer != "GRPOTrainer" or _has_penalty(given.values)))


def _has_penalty(values: Mapping[str, str | None]) -> bool:
    """Return whether GRPO is given a weight of the distance to the frozen model; its default differs by release."""
    try:
        return float(values.get("beta") or 0) != 0
    except ValueError:
        return False
