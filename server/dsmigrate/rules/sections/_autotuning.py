"""Whether a config is for ``deepspeed --autotuning``, whose trials run with configs that the autotuner writes."""

from __future__ import annotations

from dsmigrate.document import Array
from dsmigrate.rules.context import Context


def is_tuned(context: Context) -> bool:
    """Return whether the autotuner is on, and the file or how it is started shows that it is meant.

    Lists of values to try, where one value belongs, are for the autotuner alone.
    """
    if not context.is_on("autotuning.enabled"):
        return False
    started = any("autotuning" in given.values for given in context.facts.arguments)
    return started or any(
        isinstance(entry.node, Array) and entry.key is not None and "array" not in entry.key.type
        for entry in context.entries
    )
