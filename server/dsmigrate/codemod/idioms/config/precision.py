"""``--precision fp16`` and ``bf16``: half-precision parameters with float32 master weights instead of autocast."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import BlockKind, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Obj, each
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Remove
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG308",
        "Half-precision parameters, as asked for",
        "--precision fp16 or bf16 replaces autocast by half-precision parameters with fp32 master weights.",
        "Less memory and communication, but not the numerics of autocast (about 1e-2 relative in the loss).",
        "deepspeed/runtime/engine.py, _configure_distributed_model",
        Kind.TODO,
    ),
)
_AUTOCAST = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})


def asked(training: Training, facts: Facts) -> Iterator[Decision]:
    """The section of the config, what is left of autocast and scaler, and what the person has to see to."""
    kind = facts.options.precision
    if kind == "keep":
        return
    site = facts.site
    settings = {f"{kind}.enabled": Setting(None, static=True)}
    if kind == "fp16":
        settings["fp16.auto_cast"] = Setting(None, static=True)
    cast = (
        "cast the model's inputs to bfloat16, and compute the loss in float32"
        if kind == "bf16"
        else "compute the loss in float32"
    )
    yield Decision(
        "MG308", Kind.TODO, site.module, site.node, told("the parameters are {kind} now: {cast}", kind=kind, cast=cast), "asked for by --precision; not the numerics of the original",
        config=settings,
    )  # fmt: skip
    yield from _regions(training)
    scalers = {one for event in training.steps for one in each(event.what.get("scaler", NONE)) if isinstance(one, Obj)}
    seen: set[ast.AST] = set()
    for event in training.events(Happening.SCALER_UPDATE):
        if event.node not in seen and is_statement(event) and any(one in scalers for one in each(event["scaler"])):
            seen.add(event.node)
            yield Decision(
                "MG308", Kind.CONVERTED, event.module, event.node, "scaler.update() removed", "DeepSpeed scales the loss itself",
                edits=(Remove(event.module, event.module.step(event.node).node),), differs=True,
            )  # fmt: skip


def _regions(training: Training) -> Iterator[Decision]:
    seen: set[ast.AST] = set()
    for block in training.analysis.root.blocks():
        if (
            block.kind is not BlockKind.WITH
            or block.node is None
            or block.module is None
            or block.label is None
            or block.node in seen
        ):
            continue
        if any(isinstance(one, Obj) and one.made_by in _AUTOCAST for one in each(block.label)):
            seen.add(block.node)
            yield Decision(
                "MG308", Kind.KEPT, block.module, block.node, "this region covers the loss only now: the engine switches it off for the model",
                "the parameters are half precision", lines=(int(getattr(block.node, "lineno", 1)),) * 2,
            )  # fmt: skip
