"""The wrap goes, and ``deepspeed.initialize`` makes the engine where model and optimizer are both there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Obj, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Remove, Replace, Template

IDEAS = (
    Idea(
        "MG101",
        "DistributedDataParallel becomes a DeepSpeed engine",
        "The wrap goes; deepspeed.initialize makes the engine from the raw model and the script's own optimizer.",
        "The engine stands in for the wrapped model: it is called like it, and has .module.",
        "deepspeed/__init__.py, initialize",
        Kind.CONVERTED,
    ),
    Idea(
        "MG102",
        "DataParallel fallback unwrapped",
        "torch.nn.DataParallel inside an engine would replicate the module again; the plain module is used.",
        "One process drives one device.",
        "deepspeed/runtime/engine.py, _configure_distributed_model",
        Kind.CONVERTED,
    ),
)
CONFIG = "@config@"
"""Stands in an edit for the expression of the config, which is known when all decisions are."""


def wrap(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about the wraps of the model, and about the engine."""
    site = facts.site
    made: Template = (f"deepspeed.initialize(model={{model}}, optimizer={site.optimizer}, config={CONFIG})[0]",)
    needed = (Import(site.module, "deepspeed"),)
    nodes: dict[ast.AST, Event] = {event.node: event for event in training.wraps}
    for node, event in nodes.items():
        model = _wrapped(node)
        if model is None:
            continue
        if site.wrap is not None and site.wrap.node is node:
            before, after = str(made[0]).split("{model}")
            edits: tuple[Edit, ...] = (Replace(event.module, node, (before, model, after)),)
        else:
            edits = _plain(event, model)
        yield Decision(
            "MG101", Kind.CONVERTED, event.module, node, "DistributedDataParallel → the model itself, in deepspeed.initialize",
            "the engine takes the wrapper's place", edits=edits,
        )  # fmt: skip
    if site.wrap is None:
        line = (f"{site.target} = {str(made[0]).format(model=site.model)}",)
        yield Decision(
            "MG101", Kind.CONVERTED, site.module, site.node, f"{site.target} = deepspeed.initialize(…)",
            "model and optimizer are both there from here on",
            edits=(Insert(site.module, site.node, (line,), after=True),), imports=needed,
        )  # fmt: skip
    else:
        yield Decision("MG101", Kind.CONVERTED, site.module, site.node, "deepspeed is imported", imports=needed)


def replicas(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Take DataParallel off the same model."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.WRAP):
        if event.node in seen or not any(isinstance(one, Obj) and role_of(one) is Role.REPLICAS for one in each(event["wrapper"])):
            continue
        if not training.is_model(event["module"]):
            continue
        seen.add(event.node)
        model = _wrapped(event.node)
        if model is not None:
            yield Decision(
                "MG102", Kind.CONVERTED, event.module, event.node, "DataParallel removed", "the engine's processes drive one device each",
                edits=_plain(event, model),
            )  # fmt: skip


def _wrapped(node: ast.AST) -> ast.expr | None:
    """The model in the call of a wrapper."""
    if not isinstance(node, ast.Call):
        return None
    if node.args:
        return node.args[0]
    return next((keyword.value for keyword in node.keywords if keyword.arg == "module"), None)


def _plain(event: Event, model: ast.expr) -> tuple[Edit, ...]:
    """The model in the wrapper's place; nothing where that would assign a name to itself."""
    module, node = event.module, event.node
    statement = module.step(node).node
    if isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1:
        if ast.dump(statement.targets[0]).replace("Store()", "Load()") == ast.dump(model):
            return (Remove(module, statement),)
    return (Replace(module, node, (model,)),)
