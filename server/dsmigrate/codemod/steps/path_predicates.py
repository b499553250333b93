"""MG623: tests for a file that a checkpoint's path reaches by way of a helper, another name, or a function as a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from dsmigrate.codemod.flow import Place, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.unread_forwards import texts_beside
from dsmigrate.codemod.tree import Function, Node, descendants

if TYPE_CHECKING:
    from dsmigrate.codemod.steps.file_tests import Near

IS_FILE = "os.path.isfile"
WIDER_TEST = "is_file_or_checkpoint"
WIDER_HELPER = '''def is_file_or_checkpoint(path):
    """Whether a file stands at a path, or a checkpoint of DeepSpeed, which is a directory."""
    if os.path.isfile(path):
        return True
    return bool(glob.glob(os.path.join(glob.escape(os.fspath(path)), "*mp_rank_00_model_states.pt")))
'''
_REASON = "a DeepSpeed checkpoint is a directory"
_PATHS = frozenset({"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath"})


def predicates(plan: Plan, near: Near) -> None:
    """Convert the tests for a file that say of a checkpoint, behind a call or another name, whether it is there."""
    for call in plan.tree.calls:
        asked = _asked(plan, call)
        if asked is not None and not _is_edited(plan, call):
            _through_call(plan, near, call, asked)
        elif asked is None and call.args and _is_other_name(plan, call):
            if near.concerns(call, call.args[0].value) or near.reaches(call, call.args[0].value):
                plan.need("os")
                plan.edits.replace(call.func, "os.path.exists")
                plan.converted("MG623", call, "isfile → exists", _REASON)
        _as_value(plan, near, call)
        _elsewhere(plan, near, call)


def widen(plan: Plan, call: cst.Call, asked: Node) -> None:
    """Let a test take checkpoints beside files, and nothing else: what it tells from folders stays told."""
    path = asked.with_changes(lpar=(), rpar=()) if hasattr(asked, "lpar") else asked
    plan.edits.replace(call, f"{WIDER_TEST}({plan.tree.module.code_for_node(path)})")
    plan.need("os")
    plan.need("glob")
    if WIDER_HELPER not in plan.helpers:
        plan.helpers.append(WIDER_HELPER)
    plan.converted("MG623", call, f"isfile → {WIDER_TEST}", _REASON)


def has_no_exists(plan: Plan, call: cst.Call, asked: Node) -> bool:
    """Whether ``.exists()`` is not what ``.is_file()`` may become: entries of a folder have none, ``Path("")`` is the folder."""
    if isinstance(asked, cst.Call):
        given = asked.args[0].value if len(asked.args) == 1 else None
        return bool(plan.imports.names(asked.func) & _PATHS) and isinstance(given, cst.Name | cst.Attribute)
    scans = any("os.scandir" in plan.imports.names(other.func) for other in plan.tree.calls)
    if not scans or not isinstance(asked, cst.Name):
        return False
    place = plan.flow.place(asked, plan.function_of(call))
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return all(b.kind in ("for", "argument") for b in bindings)  # variables of comprehensions have none


def _is_edited(plan: Plan, call: cst.Call) -> bool:
    known = plan.edits.expressions
    return call in known or call.func in known or getattr(call.func, "attr", None) in known


def _asked(plan: Plan, call: cst.Call) -> Node | None:
    """The path that a test for a file asks about."""
    if IS_FILE in plan.imports.names(call.func):
        return call.args[0].value if call.args else None
    func = call.func
    return func.value if isinstance(func, cst.Attribute) and func.attr.value == "is_file" and not call.args else None


def _through_call(plan: Plan, near: Near, call: cst.Call, asked: Node) -> None:
    """A test in a helper: the paths that its callers hand in decide."""
    function = plan.function_of(call)
    if near.is_other(plan.flow.place(asked, function)):
        return
    given = list(_given(plan, near, call, asked))
    if not (any(given) or near.reaches(call, asked)):
        return
    func = call.func
    if not given or not all(given) or (isinstance(func, cst.Attribute) and has_no_exists(plan, call, asked)):
        widen(plan, call, asked)
    elif isinstance(func, cst.Attribute) and func.attr.value == "is_file":
        plan.edits.replace(func.attr, lambda _: cst.Name("exists"))
        plan.converted("MG623", call, "is_file → exists", _REASON)
    else:
        plan.need("os")
        plan.edits.replace(func, "os.path.exists")
        plan.converted("MG623", call, "isfile → exists", _REASON)


def _given(plan: Plan, near: Near, call: cst.Call, asked: Node) -> Iterator[bool]:
    """For each path that arrives at a test as an argument, whether it may be a checkpoint's."""
    function = plan.function_of(call)
    around = next((node for node in plan.tree.ancestors(call) if isinstance(node, cst.Lambda)), None)
    for name in {sub.value for sub in descendants(asked) if isinstance(sub, cst.Name)}:
        if around is not None and name in (names := _names(around)):
            for caller in _callers(plan, around):
                if (value := argument(caller, names.index(name), name)) is not None:
                    yield near.reaches(caller, value)
        elif name in function.params:
            for binding in plan.flow.by_place.get(plan.flow.variable(name, function), ()):
                if binding.kind == "argument":
                    yield near.reaches_from(binding.value, binding.function)
            yield from _options(plan, near, function)


def _names(node: cst.Lambda) -> list[str]:
    return [param.name.value for param in (*node.params.posonly_params, *node.params.params)]


def _callers(plan: Plan, node: cst.Lambda) -> list[cst.Call]:
    """The calls of a lambda by the variable that it is assigned to."""
    places: set[Place | None] = {b.place for b in plan.flow.bindings if b.value is node}
    places.discard(None)
    return [call for call in plan.tree.calls if plan.flow.place(call.func, plan.function_of(call)) in places]


def _options(plan: Plan, near: Near, function: Function) -> Iterator[bool]:
    """The options of the command line whose ``type`` is a function that tests."""
    for call in plan.tree.calls:
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "add_argument":
            continue
        kind = argument(call, None, "type")
        if kind is not None and plan.flow.function_named(kind, plan.function_of(call)) is function:
            names = [str(a.value.evaluated_value) for a in call.args if isinstance(a.value, cst.SimpleString)]
            words = {name.lstrip("-").replace("-", "_") for name in names}
            yield any(near.has_word(word) for word in words) or any(place[2] in words for place in near.places)


def _is_other_name(plan: Plan, call: cst.Call) -> bool:
    """``there = os.path.isfile``, and a call of it."""
    place = plan.flow.place(call.func, plan.function_of(call)) if isinstance(call.func, cst.Name) else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return bool(bindings) and all(b.index is None and IS_FILE in plan.imports.names(b.value) for b in bindings)


def _as_value(plan: Plan, near: Near, call: cst.Call) -> None:
    """``filter(os.path.isfile, paths)``: the function is handed on together with paths of checkpoints."""
    for arg in call.args:
        value = arg.value
        if not isinstance(value, cst.Name | cst.Attribute) or value in plan.edits.expressions:
            continue
        if IS_FILE in plan.imports.names(value) or plan.imports.names(value) & {f"{name}.is_file" for name in _PATHS}:
            if any(
                near.concerns(call, other.value) or near.reaches(call, other.value)
                for other in call.args
                if other is not arg
            ):
                plan.need("os")
                plan.edits.replace(value, "os.path.exists")
                plan.converted("MG623", call, "isfile → exists", _REASON)


def _elsewhere(plan: Plan, near: Near, call: cst.Call) -> None:
    """A helper that tests, in a file that takes no part in the training: the person is to let it take a checkpoint."""
    name = (dotted(call.func) or "").rpartition(".")[2]
    if (
        not name
        or plan.flow.callees(call)
        or not any(near.leads_to(arg.value, plan.function_of(call)) for arg in call.args)
    ):
        return
    definition = re.compile(rf"^def {re.escape(name)}\(.*?(?=^[^\s#)]|\Z)", re.MULTILINE | re.DOTALL)
    texts = (text for text in texts_beside(plan) if f"def {name}(" in text)
    bodies = [body for text in texts for body in definition.findall(text)]
    if any(_FOR_FILES.search(body) and "torch.load" not in body for body in bodies):
        plan.handled.add(call)
        plan.todo("MG623", call, f"{name} of another file asks for a file: let it take a DeepSpeed checkpoint, which is a directory",
                  "what is false for a directory would start the training from scratch")  # fmt: skip


_FOR_FILES = re.compile(r"\bis_?file\b")
