"""Parameters that an optimizer type has and the class that it becomes does not take, and those it needs.

``Parameter.only_with`` says in words which class takes a parameter, and what the others do with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsmigrate.knowledge import Knowledge, Parameter, TypeFacts
from dsmigrate.knowledge.versions import order

Condition = tuple[str, str, object]
_DROPPED_SINCE = "0.19.6"
"""Before it what is now ignored was a ``TypeError``."""
_DEVICE = "zero_optimization.offload_optimizer.device"
_TORCH = "optimizer.params.torch_adam"
_OTHER_CLASSES: tuple[tuple[str, tuple[Condition, ...]], ...] = (
    (r"`torch_adam` left false", ((_TORCH, "in", [True]),)),
    (r"`torch_adam` true and", ((_TORCH, "not", [True]), ("optimizer.params.adam_w_mode", "not", [False]))),
    (r"`torch_adam` true", ((_TORCH, "not", [True]),)),
    (r"the torch class", ((_DEVICE, "in", ["cpu", "nvme"]),)),
    (r"the fused class|FusedLion", ((_DEVICE, "in", ["cpu", "nvme"]), (_TORCH, "in", [True]))),
    (r"`zero_optimization.offload_optimizer`", ((_DEVICE, "in", ["none"]),)),
)
"""How ``only_with`` begins, and the conditions any of which makes it another class."""


def foreign(known: Knowledge) -> Iterator[tuple[Condition, ...]]:
    """Yield conditions under which the engine stops, as a parameter stands beside a class that does not take it."""
    for facts in known.optimizers():
        for parameter in facts.parameters.values():
            if _stops(facts, parameter, known):
                for other in _others(parameter):
                    yield (("optimizer.type", "in", [facts.name]), _presence(parameter), other)


def incomplete(known: Knowledge) -> Iterator[tuple[Condition, ...]]:
    """Yield conditions under which the engine stops, as a type lacks a parameter that it cannot do without."""
    for facts in (*known.optimizers(), *known.schedulers()):
        for name, parameter in facts.parameters.items():
            if parameter.required:
                there: tuple[Condition, ...] = (("scheduler.params", "given", True),) * (facts.kind == "scheduler")
                yield (
                    (f"{facts.kind}.type", "in", [facts.name]),
                    *there,
                    (f"{facts.kind}.params.{name}", "given", False),
                )


def _stops(facts: TypeFacts, parameter: Parameter, known: Knowledge) -> bool:
    otherwise = parameter.only_with.partition(";")[2]
    if facts.takes_anything or not parameter.only_with:
        return False
    return "Error" in otherwise or order(known.version) < order(_DROPPED_SINCE)


def _presence(parameter: Parameter) -> Condition:
    """Return the condition that a parameter is there, and on where only that matters."""
    path = f"optimizer.params.{parameter.name}"
    return (path, "in", [True]) if "RuntimeError" in parameter.only_with else (path, "given", True)


def _others(parameter: Parameter) -> tuple[Condition, ...]:
    needs = parameter.only_with.partition(";")[0]
    return next((others for start, others in _OTHER_CLASSES if re.match(start, needs)), ())
