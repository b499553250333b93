"""A function that runs backward or step, and cannot name the engine, is given it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import AddArgument, AddParameter
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG111",
        "The engine is passed to the helper that runs backward or step",
        "A helper that only gets the loss and the optimizer gets the engine too, from every place that calls it.",
        "backward and step are the engine's.",
        "deepspeed/runtime/engine.py, backward, step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG913",
        "The engine cannot be named where backward runs",
        "backward or step is called in a function that receives neither the model nor anything that holds it.",
        "No argument can be added on the way there.",
        "deepspeed/runtime/engine.py, backward, step",
        Kind.REFUSED,
    ),
)


def handed(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each call and each function on the way of the engine."""
    for event in facts.passing.stuck:
        if event in training.backwards or event in training.steps:
            early = training.is_before(event)
            yield Decision(
                "MG913", Kind.REFUSED, event.module, event.node, "this runs before the engine is made" if early else "no name leads to the model where this runs",
                "the engine has to run backward and step",
            )  # fmt: skip
            return
    seen: set[object] = set()
    for one in facts.passing.handed:
        yield Decision(
            "MG111", Kind.CONVERTED, one.module, one.call, f"{one.function.name}(…, engine={one.code})", "it runs backward or step",
            edits=(AddArgument(one.module, one.call, "engine", (one.code,)),),
        )  # fmt: skip
        if one.function not in seen:
            seen.add(one.function)
            yield Decision(
                "MG111", Kind.CONVERTED, one.home, one.function, told("{name} takes the engine", name=one.function.name), "it runs backward or step",
                edits=(AddParameter(one.home, one.function, "engine", "None" if one.function in facts.passing.optional else None),), lines=(one.function.lineno, one.function.lineno),
            )  # fmt: skip
