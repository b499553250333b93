"""MG623: what a directory answers otherwise than a file, where the path of a resume checkpoint is looked for."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found
from dsmigrate.codemod.steps.same_paths import Root, roots, roots_of
from dsmigrate.codemod.tree import Node

if TYPE_CHECKING:
    from dsmigrate.codemod.steps.file_tests import Near

_FILES = ("mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt",
          "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")  # fmt: skip
_SIZES = frozenset({"os.path.getsize", "os.stat"})
_GLOBS = frozenset({"glob.glob", "glob.iglob"})


def folder_answers(plan: Plan, found: Found, near: Near) -> None:
    """Mark the tests by which a resume would pass over a checkpoint, or take what is in it for one."""
    resumed = {root for load in found.loads for root in roots_of(plan, load)}
    _endings(plan, resumed)
    for call in plan.tree.calls:
        if call in plan.handled:
            continue
        asked, names = _asked(call), plan.imports.names(call.func)
        last = (dotted(call.func) or "").rpartition(".")[2] or getattr(getattr(call.func, "attr", None), "value", "")
        if asked is None or _is_of_data(plan, call):
            continue
        if _is_size(plan, call, names, last):
            said = "its size here is that of the folder alone" if near.concerns_far(call, asked) else None
        elif "os.path.isdir" in names or last == "is_dir":
            same = resumed & roots(plan, asked, plan.function_of(call))
            said = (
                "this is true for it now; tell it from other folders by the *mp_rank_00_model_states.pt in it"
                if same
                else None
            )
        elif "os.walk" in names:
            said = "it is among the folders here, and its own files are found as files"
            said = said if near.leads_to(asked, plan.function_of(call)) else None
        elif (names & _GLOBS and argument(call, None, "recursive") is not None) or last == "rglob":
            if not _may_match(call):
                continue
            said = "the files in it are found here too" if near.leads_to(asked, plan.function_of(call)) else None
        else:
            said = None
        if said is not None:
            plan.handled.add(call)
            plan.todo(
                "MG623", call, f"a DeepSpeed checkpoint is a directory: {said}", "the script looks for a file here"
            )


def _is_of_data(plan: Plan, call: cst.Call) -> bool:
    """Whether a call stands in a method of a data set, whose files are the data."""
    function = plan.function_of(call)
    return any(
        function in cls.methods.values() and any(base.endswith("Dataset") for base in cls.bases)
        for cls in plan.tree.classes.values()
    )


def _may_match(call: cst.Call) -> bool:
    """Whether a pattern may find a file of DeepSpeed's: not ``**/pytorch_model.bin``."""
    node: Node | None = call.args[0].value if call.args else None
    while isinstance(node, cst.BinaryOperation | cst.Call):
        is_call = isinstance(node, cst.Call)
        node = (node.args[-1].value if node.args else None) if isinstance(node, cst.Call) else node.right
        if is_call and not isinstance(node, cst.SimpleString | cst.FormattedString):
            return True
    if isinstance(node, cst.FormattedString):
        last = node.parts[-1] if node.parts else None
        text = last.value if isinstance(last, cst.FormattedStringText) and "/" in last.value else "*"
    else:
        text = str(node.evaluated_value) if isinstance(node, cst.SimpleString) else "*"
    return any(fnmatch(name, text.rpartition("/")[2]) for name in _FILES)


def _endings(plan: Plan, resumed: set[Root]) -> None:
    """``path.endswith(".pt")`` holds with the slash too that a shell completes the name of a directory with."""
    for call in plan.tree.calls:
        func = call.func
        if not call.args or call in plan.edits.expressions or func in plan.edits.expressions:
            continue
        if isinstance(func, cst.Attribute) and func.attr.value == "endswith" and _begins_with_dot(call.args[0].value):
            asked, text = func.value, "{}.rstrip(os.sep)"
        elif "os.path.splitext" in plan.imports.names(func):
            asked, text = call.args[0].value, "os.path.normpath({})"
        else:
            continue
        if not isinstance(asked, cst.Name | cst.Attribute) or asked in plan.edits.expressions:
            continue
        if resumed & roots(plan, asked, plan.function_of(call)):
            plan.need("os")
            plan.edits.replace(asked, text.format(plan.code(asked)))
            plan.converted("MG623", call, f"the ending of {plan.code(asked)} is asked for without a slash behind it",
                           "a DeepSpeed checkpoint is a directory, and shells complete its name so")  # fmt: skip


def _begins_with_dot(node: Node) -> bool:
    """``".pt"`` or ``(".pt", ".pth")``."""
    texts = [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]
    return all(isinstance(t, cst.SimpleString) and str(t.evaluated_value).startswith(".") for t in texts)


def _asked(call: cst.Call) -> Node | None:
    """The path that a call asks about: its first argument, or the object whose method it is."""
    func = call.func
    if isinstance(func, cst.Attribute) and (func.attr.value in ("is_dir", "rglob") or not call.args):
        made = func.value  # `Path(args.resume)` is what it is made of
        return made.args[0].value if isinstance(made, cst.Call) and len(made.args) == 1 else made
    return call.args[0].value if call.args else None


def _is_size(plan: Plan, call: cst.Call, names: set[str], last: str) -> bool:
    """``os.path.getsize(path)``, ``os.stat(path).st_size``, ``path.stat().st_size``."""
    if "os.path.getsize" in names:
        return True
    parent = plan.tree.parent.get(call)
    of_size = isinstance(parent, cst.Attribute) and parent.attr.value == "st_size"
    return of_size and bool(names & _SIZES or last == "stat")
