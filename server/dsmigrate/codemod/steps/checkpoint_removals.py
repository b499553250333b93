"""MG623: removing old checkpoints, which are directories now, and only when the new one is there."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found
from dsmigrate.codemod.steps.checkpoint_helpers import need_removal
from dsmigrate.codemod.steps.checkpoint_uses import is_before_writing
from dsmigrate.codemod.steps.file_tests import Near
from dsmigrate.codemod.tree import Node, descendants

_FILES = frozenset({"os.remove", "os.unlink"})
_TESTS = frozenset({"os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.lexists"})
_ASKS = frozenset({"exists", "is_file", "is_dir"})


def removals(plan: Plan, found: Found) -> None:
    """Old checkpoints that are removed, wherever that happens, are directories now.

    A removal behind a request of another checkpoint waits until that is written, as it came behind ``torch.save`` before.
    """
    near = Near(plan, found)
    for call in plan.tree.calls:
        path = _removed(plan, call)
        if path is None or call.func in plan.edits.expressions or not near.concerns_far(call, path):
            continue
        later = any(is_before_writing(plan, save, call, 2) for save in found.saves)
        if "shutil.rmtree" in plan.imports.names(call.func) and (not later or _is_made_again(plan, call, path)):
            continue
        need_removal(plan, later=later)
        if later:
            _tests_around(plan, call, path)
        text = plan.tree.module.code_for_node(path.with_changes(lpar=(), rpar=()))
        if _may_be_missing(call):
            text += ", missing_ok=True"
        plan.edits.replace(call, f"remove_checkpoint({text})")
        plan.converted(
            "MG623", call, f"{plan.code(call.func)} → remove_checkpoint", "a DeepSpeed checkpoint is a directory"
        )


def _removed(plan: Plan, call: cst.Call) -> Node | None:
    """The path that a call removes."""
    names = plan.imports.names(call.func)
    if names & _FILES and len(call.args) == 1:
        return call.args[0].value
    if "shutil.rmtree" in names and call.args and (len(call.args) == 1 or _may_be_missing(call)):
        return call.args[0].value
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "unlink" and not names & _FILES:
        return call.func.value if not call.args or _may_be_missing(call) else None
    return None


def _is_made_again(plan: Plan, call: cst.Call, path: Node) -> bool:
    """Whether the same function makes a folder of the same name, which has to be new."""
    text, function = plan.code(path), plan.function_of(call)
    return any(
        (dotted(other.func) or plan.code(other.func)).rpartition(".")[2] in ("makedirs", "mkdir")
        and (text in [plan.code(arg.value) for arg in other.args] or plan.code(other.func).startswith(f"{text}."))
        for other in plan.tree.calls
        if plan.function_of(other) is function
    )


def _may_be_missing(call: cst.Call) -> bool:
    """``path.unlink(missing_ok=True)`` and ``shutil.rmtree(path, ignore_errors=True)``."""
    return any(dotted(argument(call, None, name)) == "True" for name in ("missing_ok", "ignore_errors"))


def _tests_around(plan: Plan, call: cst.Call, path: Node) -> None:
    """``if os.path.exists(old)`` around a removal also lets in what is only requested so far."""
    text = plan.code(path)
    tests = [outer.node.test for outer in plan.tree.statement(call).enclosing() if isinstance(outer.node, cst.If)]
    for test in tests:
        for asked in descendants(test):
            if not isinstance(asked, cst.Call) or asked in plan.edits.expressions:
                continue
            func = asked.func
            of_path = isinstance(func, cst.Attribute) and func.attr.value in _ASKS and plan.code(func.value) == text
            if of_path or (plan.imports.names(func) & _TESTS and plan.code(asked.args[0].value) == text):
                there = plan.code(asked).replace("isfile(", "exists(").replace(".is_file(", ".exists(")
                either = f"is_requested({text}) or {there}"
                plan.edits.replace(asked, either if asked is test else f"({either})")
                plan.converted("MG623", asked, f"{plan.code(asked)} → is_requested or exists",
                               "the one that is removed may not be written yet")  # fmt: skip
