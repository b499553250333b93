"""The optimizer that DeepSpeed builds of one side: class, form of the decay, parameters."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.optimizer import built_class, type_facts
from dsmigrate.knowledge import MISSING, Consumer, TypeFacts
from dsmigrate.languages import mark, say
from dsmigrate.rules.context import UNKNOWN
from dsmigrate.rules.optimizer._shared import decays_like_l2

PARAMS = "optimizer.params"
TYPE = "optimizer.type"


class Decay(enum.Enum):
    """How a weight decay acts."""

    DECOUPLED = mark("decoupled from the gradient")
    GRADIENT = mark("added to the gradient (L2)")


@dataclass(frozen=True, slots=True)
class Built:
    """An optimizer: what the config calls it, the class that is made, and how it decays; None where it does not."""

    facts: TypeFacts
    class_name: str
    decay: Decay | None

    @property
    def name(self) -> str:
        """The name as messages show it, with the class where that says more."""
        return f"`{self.facts.name}`" + (f" ({self.class_name})" if self.class_name else "")


def built(side: Side) -> Built | None:
    """Return the optimizer of a side; None where DeepSpeed builds none."""
    facts = type_facts(side.context, "optimizer")
    if facts is None:
        return None
    return Built(facts, built_class(side.context, facts), _decay(side, facts))


def maker(side: Side) -> str:
    """Return who makes the optimizer where DeepSpeed builds none: "without it the script has to make it"."""
    name = side.written(TYPE)
    if isinstance(name, str):
        return say("`{name}` is none that {known_version} can build", name=name, known_version=side.known.version)
    if side.context.consumer is Consumer.TRANSFORMERS:
        return say("without it the Trainer makes it from TrainingArguments")
    return say("without it the script has to make it")


def decays(side: Side) -> bool:
    """Return whether a side decays weights, for groups that bring no decay of their own; unknown counts."""
    value = side.value(f"{PARAMS}.weight_decay")
    return value is UNKNOWN or (value is not MISSING and bool(value))


def _decay(side: Side, facts: TypeFacts) -> Decay | None:
    parameter = facts.parameters.get("weight_decay")
    if parameter is None:
        return None
    if "decoupled_weight_decay" in facts.parameters and facts.name != "Adam":
        apart = side.value(f"{PARAMS}.decoupled_weight_decay")
        return Decay.DECOUPLED if apart not in (MISSING, UNKNOWN, None) and apart else Decay.GRADIENT
    if facts.name == "Adam":
        return Decay.GRADIENT if decays_like_l2(side.context, facts) else Decay.DECOUPLED
    return Decay.DECOUPLED if "ecoupled" in parameter.english or facts.name == "Muon" else Decay.GRADIENT
