"""timm's NativeScaler and ApexScaler, which run backward, clip and step by themselves, do so through the engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import static_value, values_at
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, NONE, Const, Obj, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.scaled import for_scaled
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, Template
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG112",
        "A library's scaler that runs backward and step gets the engine",
        "timm's NativeScaler and ApexScaler are put into EngineScaler, which does the same through the engine; their calls stay.",
        "Such an object calls backward and step by itself, in a file that is not the script's to change: under an engine these "
        "would go past it. Other clip modes than the norm, and second-order optimizers, raise an error.",
        "timm/utils/cuda.py, 0.3 to 1.0",
        Kind.CONVERTED,
    ),
)


def native(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The line that puts the library's scaler into one of the engine, behind both."""
    events = [event for event in training.steps if "library" in event.what]
    scalers: set[Value] = {
        one for event in events for one in each(event.what.get("scaler", NONE)) if isinstance(one, Obj)
    }
    if not scalers:
        return
    event = events[0]
    place = training.place_with(scalers)
    if place is None:
        yield Decision(
            "MG112", Kind.TODO, event.module, event.node, "make this scaler a ds_compat.EngineScaler(engine, scaler) where both are there",
            "it runs backward and step by itself", parts=frozenset({"EngineScaler"}),
        )  # fmt: skip
        return
    moment, engine, name = place
    line = f"{name} = ds_compat.EngineScaler({engine}, {name})"
    found = values_at(training.analysis.run, moment.names, ast.parse(name, mode="eval").body) or []
    lines: tuple[Template, ...] = ((f"if {name} is not None:",), (f"    {line}",)) if NONE in found else ((line,),)
    made = [one for one in training.events(Happening.MADE) if any(thing in scalers for thing in each(one["what"]))]
    lines, plain = for_scaled(training, made, lines, moment)
    if plain is not None:
        yield Decision(
            "MG112", Kind.TODO, plain.module, plain.node, "this step does not use the scaler: make the EngineScaler only in runs that do",
            "a scaler takes each step once between two updates",
        )  # fmt: skip
    yield Decision(
        "MG112", Kind.CONVERTED, moment.module, moment.node, line, "it runs backward and step through the engine then",
        edits=(Insert(moment.module, moment.node, lines, after=True, rank=2),), parts=frozenset({"EngineScaler"}), lines=(0, 0),
    )  # fmt: skip
    for clip in training.events(Happening.CLIP):
        mode = static_value(training.analysis, clip.what.get("mode", NONE)) if "library" in clip.what else None
        if mode not in {None, "norm"}:
            yield Decision(
                "MG112", Kind.TODO, clip.module, clip.node, told("clipping by {mode} fails: the engine clips by the norm", mode=str(mode)),
            )  # fmt: skip
            break
    for backward in training.backwards:
        graph = backward.what.get("create_graph", FALSE_VALUE)
        if "library" in backward.what and any(isinstance(one, Const) and one.value for one in each(graph)):
            yield Decision(
                "MG112",
                Kind.TODO,
                backward.module,
                backward.node,
                "create_graph fails: the engine keeps no graph of gradients",
            )
            return
