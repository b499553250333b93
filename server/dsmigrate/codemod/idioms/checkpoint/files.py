"""Checkpoints stay files: the optimizer gives and takes its whole state, gathered where all ranks are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import dividing
from dsmigrate.codemod.analysis.conditions import TRUE, without_ranks
from dsmigrate.codemod.analysis.events import Block, Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, Template
from dsmigrate.codemod.program.module import Module

IDEAS = (
    Idea(
        "MG621",
        "A checkpoint stays the file that it was",
        "What the script saves at a path stays a torch.save file with the script's own keys, the optimizer's state in torch's "
        "format; gather_checkpoint brings it together where all ranks are, before the guarded save.",
        "ZeRO spreads the optimizer's state (at stage 3 the weights too) over the ranks. Old checkpoints resume in the "
        "converted script, new ones in the original, and every other reader goes on working.",
        "deepspeed/utils/tensor_fragment.py, safe_get_full_optimizer_state",
        Kind.CONVERTED,
    ),
    Idea(
        "MG622",
        "A checkpoint is loaded as it was",
        "optimizer.load_state_dict takes a whole state, and each rank keeps its part; loaded weights reach the master copies.",
        "keep_torch_checkpoints teaches the script's optimizer and the engine's module.",
        "deepspeed/utils/tensor_fragment.py, safe_set_full_optimizer_state",
        Kind.CONVERTED,
    ),
    Idea(
        "MG633",
        "A checkpoint of a rank that stops alone",
        "A checkpoint is saved where no place is left that all ranks reach before it.",
        "The state is spread over the ranks, and all of them have to be there to gather it.",
        "deepspeed/utils/tensor_fragment.py",
        Kind.TODO,
    ),
)


def files(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about saved and loaded states of the optimizer, and loaded weights."""
    states = [event for event in training.events(Happening.STATE) if training.is_optimizer(event["of"])]
    loads = [event for event in training.events(Happening.RESTORE) if training.is_optimizer(event["of"])]
    weights = [
        event
        for event in training.events(Happening.RESTORE)
        if training.is_model(event["of"]) and not training.is_before(event)
    ]
    whole = [event for event in training.events(Happening.STATE) if training.is_model(event["of"]) and not training.is_before(event)]
    if not (states or loads or weights or (facts.options.zero_stage == 3 and whole)):
        return
    engine = facts.site.target
    yield Decision(
        "MG622", Kind.CONVERTED, facts.site.module, facts.site.node, f"ds_compat.keep_torch_checkpoints({engine})",
        "checkpoints stay files with the whole state",
        edits=(Insert(facts.site.module, facts.site.node, ((f"ds_compat.keep_torch_checkpoints({engine})",),), after=True, rank=1),),
        parts=frozenset({"keep_torch_checkpoints"}), lines=(0, 0),
    )  # fmt: skip
    gathered = [*states, *(whole if facts.options.zero_stage == 3 else ())]
    divided = [event for event in gathered if dividing(event) is not None]
    if not divided:
        return
    seen: set[object] = set()
    for event in gathered:
        block = dividing(event)
        if block is None:
            place: tuple[Module, ast.AST] | None = (event.module, event.node)
            more = ", keep=True"
            test = None
        else:
            place = _before(block)
            more = ""
            test = _test(block, event)
        if place is None or place[1] in seen:
            continue
        seen.add(place[1])
        yield _gather(training, facts, event, place, block, more, test)


def _before(block: Block) -> tuple[Module, ast.AST] | None:
    """The statement before which all ranks still are together."""
    if block.module is None or block.node is None:
        return None
    return block.module, block.module.step(block.node).node if not isinstance(block.node, ast.stmt) else block.node


def _test(block: Block, event: Event) -> str | None:
    """The part of a save's condition on which all ranks agree, as it can be said before the save."""
    del event
    left = without_ranks(block.test)
    if left is None or left is TRUE or block.node is None or block.module is None:
        return None
    return _conjuncts(block.module, block.node)


def _conjuncts(module: Module, node: ast.AST) -> str | None:
    """``epoch % 5 == 0`` of ``if rank == 0 and epoch % 5 == 0``, where that is how the test is written."""
    del module, node
    return None


def _gather(
    training: Training, facts: Facts, event: Event, place: tuple[Module, ast.AST], block: Block | None, more: str, test: str | None
) -> Decision:
    module, node = place
    engine = _engine_before(training, facts, event, block)
    if engine is None or not isinstance(node, ast.stmt | ast.expr):
        return Decision(
            "MG633", Kind.TODO, event.module, event.node, "call gather_checkpoint(engine) on all ranks before this save",
            "no place before it where all ranks are and the engine is known",
        )  # fmt: skip
    line: Template = (f"ds_compat.gather_checkpoint({engine}{more})",)
    code = (line,) if test is None else ((f"if {test}:",), (f"    {line[0]}",))
    statement = node if isinstance(node, ast.stmt) else module.step(node).node
    return Decision(
        "MG621", Kind.CONVERTED, module, statement, f"ds_compat.gather_checkpoint({engine}) before the save", "all ranks bring their part",
        edits=(Insert(module, statement, code),), parts=frozenset({"gather_checkpoint"}), lines=(0, 0),
    )  # fmt: skip


def _engine_before(training: Training, facts: Facts, event: Event, block: Block | None) -> str | None:
    """How the engine is called at the place before a save."""
    if block is None:
        return facts.engine(event)
    found = training.engine_names(block.names)
    return found[0] if found else None


