"""What of the model trains, as far as files and settings beside the config tell."""

from __future__ import annotations

from pathlib import Path

from dsmigrate.editing.derived.sizes import parameters_text
from dsmigrate.languages import say
from dsmigrate.rules import Facts


def trained(facts: Facts) -> str:
    """Return what trains and where that was read, as an end of a sentence; "" where no model is known."""
    model = facts.model
    if model is None:
        return ""
    every = sum(model.tensors)
    if model.frozen:
        return say(
            "{own} of {every} parameters train ({where}), the others are frozen in {base}",
            own=parameters_text(every - sum(model.frozen)),
            every=parameters_text(every),
            where=Path(model.trains).name if model.trains.endswith((".json", ".py")) else f"trainable {model.trains}",
            base=model.base,
        )
    if model.held is None and model.trains:
        return say(
            "{every} parameters, of which {script} freezes some: `trainable` says what trains",
            every=parameters_text(every),
            script=model.trains,
        )
    if model.held is None:
        return say(
            "{every} parameters in {base}, which do not train: `trainable` or an `adapter_config.json` says what does",
            every=parameters_text(every),
            base=model.base,
        )
    return say("all {every} parameters train", every=parameters_text(every))
