"""MG621, MG629: saving through the engine, on all ranks, behind every guard."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import (
    COPIES,
    PARTITIONED,
    Found,
    Save,
    copies_of,
    has_rank,
    is_handle,
    sources,
    state_calls,
)
from dsmigrate.codemod.steps.checkpoint_helpers import SAVED, need_copying, need_helpers
from dsmigrate.codemod.steps.checkpoint_removals import removals
from dsmigrate.codemod.steps.checkpoint_swaps import swaps
from dsmigrate.codemod.steps.checkpoint_uses import is_before_writing, other_uses, read_back
from dsmigrate.codemod.steps.exports import gather
from dsmigrate.codemod.steps.file_tests import file_tests
from dsmigrate.codemod.steps.gone_group import group_is_gone
from dsmigrate.codemod.steps.leaving import run_on_all_ways
from dsmigrate.codemod.steps.ranks import asked_at, is_uniform, rank_guard, since
from dsmigrate.codemod.steps.taken_back import taken_back
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG621",
        "A resume checkpoint is saved by the engine",
        "What torch.save wrote under a rank guard is requested there and saved by all ranks behind the guard.",
        "The optimizer state is spread over the ranks and engine.save_checkpoint is collective: under a rank guard it "
        "waits for ever. The path keeps its meaning: its directory holds the checkpoint, its last part is the tag. "
        "A file of the DDP script that stands there goes to the same path with .before behind it.",
        "engine-semantics 13-14; https://github.com/deepspeedai/DeepSpeed/issues/2993",
        Kind.CONVERTED,
    ),
    Idea(
        "MG629",
        "A checkpoint through an open file or buffer",
        "torch.save and torch.load work on a handle here; DeepSpeed saves to and loads from directories.",
        "Uploads to object stores and in-memory buffers have to be done with the directory that engine.save_checkpoint wrote.",
        "deepspeed/runtime/engine.py, save_checkpoint",
        Kind.TODO,
    ),
)

_OF_NODE = re.compile(
    r"local_?rank\w*[\"')\]]*\s*(?:==\s*0|in\s*[\[({]\s*-1\s*,\s*0)|\bnot\s+[\w.]*local_?rank\b|rank\w*(?:\(\))?\s*%",
    re.IGNORECASE,
)
_LATEST = re.compile(r"""(?:^\w*["']|[/\\])latest["']$""")
_OF_ALL = re.compile(r"(?<!local_)(?<!local)rank(?:\(\))?\s*==\s*0", re.IGNORECASE)


def saves(plan: Plan, found: Found) -> None:
    """Convert the saving of resume checkpoints."""
    for save in list(found.saves):
        if is_handle(plan, save.path, save.call):
            found.saves.remove(save)
            for source, _ in sources(plan, save.state, save.statement.function, 6):
                plan.handled.update(call for call, _ in state_calls(plan, source))
            plan.todo("MG629", save.call, "this resume checkpoint is written to an open file: use engine.save_checkpoint on all ranks",
                      "a DeepSpeed checkpoint is a directory")  # fmt: skip
    if not found.saves:
        return
    _own_latest(plan, found)
    need_helpers(plan, loading=False)
    file_tests(plan, found)
    read_back(plan, found)
    removals(plan, found)
    taken_back(plan, found)
    removed = plan.facts.get("weight_keys", set())
    keep_weights = bool(plan.facts.get("keep_weights")) or not removed
    points: dict[Node, Node] = {}
    for save in found.saves:
        _hollow(plan, save, keep_weights=keep_weights)
        plan.edits.replace(save.call, _request)
        plan.handled.add(save.call)
        plan.converted("MG621", save.statement, f"{plan.code(save.call.func)} → request_checkpoint; all ranks save behind the guard",
                       "DeepSpeed checkpoints are collective")  # fmt: skip
        _copies(plan, save)
        swaps(plan, save)
        if _differs_by_rank(plan, save):
            plan.todo("MG621", save.statement, "every rank saved a file of its own here; the engine writes one checkpoint for all, under rank 0's path",
                      "a path with the rank in it is not found by the other ranks")  # fmt: skip
        if save is found.saves[0]:
            plan.kept("MG623", save.statement, "whoever reads this checkpoint elsewhere gets a directory now",
                      "the weights are in its *mp_rank_00_model_states.pt under 'module' at ZeRO 0-2, what the script saved beside them under 'script'; a file of a former run at this path goes to <path>.before")  # fmt: skip
        if _on_every_node(plan, save.statement, 4):
            plan.kept("MG623", save.statement, "each node saved this file for itself; rank 0 alone asks for it now: let the nodes share the folder",
                      "one checkpoint is written for all, and what rank 0 puts into it stands on its node only")  # fmt: skip
        if not _behind_guard(plan, save.statement, points):
            plan.todo("MG621", save.statement, "call save_requested_checkpoints(engine) on all ranks after this",
                      "no place that all ranks reach and that can name the engine was found")  # fmt: skip
        elif group_is_gone(plan, save.statement):
            plan.todo("MG621", save.statement, "the process group may be gone here, and the engine's save needs it: save before destroy_process_group()",
                      "all ranks save together, which stops without a process group")  # fmt: skip
    other_uses(plan, found)


def _own_latest(plan: Plan, found: Found) -> None:
    """Keep DeepSpeed from writing its file ``latest`` where the script has a link, a folder or a file of that name."""
    for statement in plan.tree.statements:
        if isinstance(statement.node, cst.BaseCompoundStatement) and not isinstance(statement.node, cst.If):
            continue
        node = statement.node.test if isinstance(statement.node, cst.If) else statement.node
        if any(
            isinstance(sub, cst.SimpleString | cst.FormattedString) and _LATEST.search(plan.code(sub))
            for sub in descendants(node)
        ):
            plan.facts["own_latest"] = True
            plan.kept("MG623", found.saves[0].statement, "DeepSpeed's own file called latest is not written: the script has something of that name",
                      "the engine would write the tag into it, or stop where it is a directory; zero_to_fp32.py needs --tag now")  # fmt: skip
            return


def _differs_by_rank(plan: Plan, save: Save) -> bool:
    """Whether the path has the rank in it, and not only rank 0 saves."""
    function = save.statement.function
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(function, ())]
    if any(rank_guard(plan, statement) is not None for statement in (save.statement, *callers)):
        return False
    return has_rank(plan, save.path, function)


def _on_every_node(plan: Plan, statement: Statement, depth: int) -> bool:
    """Whether one rank of each node comes to a statement: ``local_rank == 0``, ``rank % ngpus_per_node == 0``."""
    guard = rank_guard(plan, statement)
    if guard is not None and isinstance(guard.node, cst.If):
        tests = [guard.node.test]
        for name in (sub for sub in descendants(guard.node.test) if isinstance(sub, cst.Name | cst.Attribute)):
            place = plan.flow.place(name, guard.function)
            given = plan.flow.by_place.get(place, ()) if place is not None else ()
            tests += [binding.value for binding in given if isinstance(binding.value, cst.Comparison)]
        text = " ".join(plan.code(test) for test in tests)
        return bool(_OF_NODE.search(text)) and not _OF_ALL.search(text)
    callers = plan.flow.callers.get(statement.function, ()) if depth else ()
    return any(_on_every_node(plan, plan.tree.statement(call), depth - 1) for call in callers)


def _request(call: Node) -> Node:
    assert isinstance(call, cst.Call)
    arguments = [arg.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT) for arg in call.args[:2]]
    arguments[-1] = arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(func=cst.Name("request_checkpoint"), args=arguments)


def _hollow(plan: Plan, save: Save, *, keep_weights: bool) -> None:
    """Entries that the engine saves itself become None, so that every key is still there."""
    for source, _ in sources(plan, save.state, save.statement.function, 6):
        for call, kind in state_calls(plan, source):
            if call in plan.edits.expressions:
                continue
            if kind == "M" and keep_weights:
                if plan.zero_stage == PARTITIONED:
                    gather(plan, plan.tree.statement(call))
                continue
            plan.edits.replace(call, SAVED)
            plan.handled.add(call)
            what = "optimizer state" if kind == "O" else "weights"
            plan.converted("MG621", call, f"{plan.code(call)} → a note: the engine saves the {what}",
                           "the engine's checkpoint holds it, spread over the ranks")  # fmt: skip


def _copies(plan: Plan, save: Save) -> None:
    """``shutil.copyfile(path, best)`` becomes another request, a move behind the save its final name.

    What is copied when all ranks have written it is copied as a directory.
    """
    for copied in copies_of(plan, save):
        call, target = copied.call, plan.code(copied.path)
        if not is_before_writing(plan, save, call):
            if plan.imports.names(call.func) & COPIES:
                need_copying(plan)
                plan.edits.replace(call.func, "copy_checkpoint")
                plan.handled.add(call)
                plan.converted(
                    "MG623", call, f"{plan.code(call.func)} → copy_checkpoint", "a DeepSpeed checkpoint is a directory"
                )
        elif plan.imports.names(call.func) & COPIES:
            plan.edits.replace(call, f"request_checkpoint({_hollow_text(plan, save)}, {target})")
            plan.converted(
                "MG623", call, "copying the checkpoint → a second request", "a DeepSpeed checkpoint is a directory"
            )
        else:
            plan.edits.replace(save.path, target)
            plan.edits.remove(copied.statement.node)
            plan.converted(
                "MG623", call, "the checkpoint is saved under its final name", "it is written later, by all ranks"
            )


def _hollow_text(plan: Plan, save: Save) -> str:
    """The state of a save as text, without what the engine saves."""
    text = plan.code(save.state)
    for call, _ in state_calls(plan, save.state):
        if call in plan.edits.expressions:
            text = text.replace(plan.code(call), SAVED)
    return text


def _behind_guard(plan: Plan, statement: Statement, points: dict[Node, Node]) -> bool:
    """Insert the collective save behind everything that only some ranks may run; False where no place is found."""
    places = asked_at(plan, statement, 4)
    if places is None:
        return False
    for asking, anchor in places:
        line = f"save_requested_checkpoints({plan.engine_name(anchor.function)})"
        above = since(plan, anchor)
        if not run_on_all_ways(plan, asking, anchor, line, points, above):
            return False
        if anchor.line_node in points:
            continue
        points[anchor.line_node] = anchor.line_node
        condition = _sure_part(plan, anchor) if above is None else None
        if condition is not None:
            plan.edits.insert_after(anchor.line_node, f"if {condition}:", f"    {line}")
        else:
            plan.edits.insert_after(anchor.line_node, line)
    return True


def _sure_part(plan: Plan, guard: Statement) -> str | None:
    """The part of a guard's test that all ranks share (``epoch % 5 == 0`` of ``rank == 0 and epoch % 5 == 0``)."""
    node = guard.node
    if not isinstance(node, cst.If) or node.orelse is not None:
        return None
    parts: list[str] = []

    def split(test: Node) -> None:
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            split(test.left)
            split(test.right)
        elif is_uniform(plan, test):
            parts.append(plan.code(test))

    split(node.test)
    return " and ".join(parts) or None
