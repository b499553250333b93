"""Whether a config is for ``deepspeed --autotuning``, whose trials run with configs that the autotuner writes."""

from __future__ import annotations

from dsmigrate.rules.context import Context


def is_tuned(context: Context) -> bool:
    """Return whether a launch line starts the autotuner with the file, in which it is on."""
    started = any("autotuning" in given.values for given in context.facts.arguments)
    return started and context.is_on("autotuning.enabled") is True
