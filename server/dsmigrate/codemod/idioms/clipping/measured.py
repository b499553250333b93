"""The norm of the gradients, measured by a clip or by functions of the script, is the engine's, behind its step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision, Need
from dsmigrate.codemod.idioms.clips import clips_of, limit_of, moved_norms
from dsmigrate.codemod.idioms.facts import Facts, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, line_range
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG422",
        "The gradient norm is still reported",
        "grad_norm(engine) gives the norm behind the step.",
        "engine.get_global_grad_norm() is there behind step() at ZeRO 1-3; at ZeRO 0 it is kept before the step. Of a skipped "
        "step it is inf.",
        "deepspeed/runtime/engine.py, get_global_grad_norm",
        Kind.CONVERTED,
    ),
)


def measured(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about what clips give, and about functions that work the norm out."""
    done: set[ast.AST] = set()
    moved = moved_norms(training, facts)
    for one in moved:
        done |= one.nodes
        ranges = [line_range(node) for node in (*one.nodes, one.step.node)]
        yield Decision(
            "MG422", Kind.CONVERTED, one.step.module, one.step.node, told("the norm is ds_compat.grad_norm({engine}), after the step", engine=one.engine),
            "the engine clips within its step", edits=one.edits, parts=frozenset({"grad_norm", "keep_grad_norm"}),
            lines=(min(first for first, _ in ranges), max(last for _, last in ranges)),
        )  # fmt: skip
    if moved:
        site = facts.site
        line = f"ds_compat.keep_grad_norm({site.target})"
        yield Decision(
            "MG422", Kind.CONVERTED, site.module, site.node, line, "at ZeRO 0 the engine measures no norm by itself",
            edits=(Insert(site.module, site.node, ((line,),), after=True, rank=3),), lines=(0, 0),
        )  # fmt: skip
    clips = clips_of(training, facts)
    if limit_of(training, facts, clips) is None:
        return
    for clip in clips:
        event = clip.event
        if event.node in done or clip.is_library or is_statement(event):
            continue
        done.add(event.node)
        reason = "the norm is needed before the step"
        yield Decision(
            "MG422", Kind.KEPT, event.module, event.node, "your clip stays, at ZeRO 0", reason, stage=0, needs=frozenset({Need.WHOLE_GRADIENTS}),
            otherwise=Decision("MG422", Kind.TODO, event.module, event.node, "this clip finds no gradients at ZeRO 1-3: use grad_norm after the step", reason),
        )  # fmt: skip
