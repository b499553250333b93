"""torch.compile: what it puts around the plain model stays below ZeRO 3; around the wrapper it would be in the engine's way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Insert, Remove, Replace, ReplaceStatement, Template

IDEAS = (
    Idea(
        "MG708",
        "The model is compiled in place",
        "Around DDP, and at ZeRO 3, torch.compile(model) becomes module.compile(), which compiles the module itself.",
        "The engine hooks the modules that it was given; a wrapper around them breaks the hooks at stage 3. One that was put around "
        "DDP would come to stand inside the engine, where names of weights would begin with _orig_mod.",
        "measured against DeepSpeed 0.19.8, torch 2.13",
        Kind.CONVERTED,
    ),
)


def compiled(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about compiled models."""
    places: dict[ast.AST, list[Event]] = {}
    for event in training.events(Happening.COMPILED):
        if training.is_model(event["model"]) and "name" not in event.what:
            places.setdefault(event.node, []).append(event)
    for node, events in places.items():
        event = events[0]
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if any(training.is_wrapped(one["model"]) for one in events):
            yield _in_place(training, facts, event, node)
        else:
            yield Decision(
                "MG708", Kind.KEPT, event.module, node, "torch.compile stays", "the engine runs the compiled module", stage=2,
                otherwise=_in_place(training, facts, event, node),
            )  # fmt: skip


def _in_place(training: Training, facts: Facts, event: Event, node: ast.Call) -> Decision:
    module = event.module
    statement = module.step(node).node
    given = node.args[0]
    more: list[str | ast.expr] = []
    for keyword in node.keywords:
        more += [", " if more else "", f"{keyword.arg}=" if keyword.arg else "**", keyword.value]
    site = facts.site
    target = (
        ast.unparse(statement.targets[0])
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is node
        else ""
    )
    there = training.has_engine(event, given)
    edits: tuple[Edit, ...]
    if target and target == ast.unparse(given) and there is not False:
        edits = (ReplaceStatement(module, statement, ((f"{target}.module.compile(", *more, ")"),)),)
    elif there is not False:
        returned = isinstance(statement, ast.Return)
        name = module.text(given) if returned else target or "model"
        edits = (
            Replace(module, node, (given,)),
            Insert(module, statement, ((f"{name}.module.compile(", *more, ")"),), after=not returned),
        )
    else:
        line: Template = (
            f"{site.target}.module.compile(",
            *[part if isinstance(part, str) else module.text(part) for part in more],
            ")",
        )
        goes = target == ast.unparse(given)
        edits = (
            Remove(module, statement) if goes else Replace(module, node, (given,)),
            Insert(site.module, site.node, (line,), after=True, rank=3),
        )
    return Decision(
        "MG708", Kind.CONVERTED, module, node, "torch.compile → module.compile(): names of weights lose any _orig_mod.",
        "the engine hooks the modules themselves", edits=edits,
    )  # fmt: skip
