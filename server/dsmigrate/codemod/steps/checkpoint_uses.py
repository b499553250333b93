"""MG623 again: what else a script does with a path that it saves a checkpoint to.

The checkpoint is a directory now, and it is written a little later: behind the rank guard, by all ranks. Whoever opens,
copies, uploads or counts files under the guard meets something else than before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import COPIES, MOVES, Found, Save, copies_of, same_text
from dsmigrate.codemod.steps.checkpoint_helpers import how_to_read, need_helpers
from dsmigrate.codemod.steps.checkpoint_reads import read_instead
from dsmigrate.codemod.steps.file_tests import Near
from dsmigrate.codemod.steps.path_texts import is_one_of, meets
from dsmigrate.codemod.steps.ranks import calls_by_name, reached_by_all
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_Names: TypeAlias = dict[Place | None, Statement | None]
_Stretch: TypeAlias = tuple[Function, int, int]

_LOADERS = frozenset({"torch.load", "torch.serialization.load"})
_SAVERS = frozenset({"torch.save", "torch.serialization.save"})
_ASKS = frozenset({"exists", "isfile", "is_file", "getsize", "listdir", "stat", "glob"})
_METHODS = frozenset({"stat", "read_bytes", "rename", "replace", "open", "symlink_to", "hardlink_to", "samefile"})
_HARMLESS = frozenset({
    "print", "join", "exists", "isfile", "isdir", "dirname", "basename", "info", "debug", "warning", "log", "append", "str",
    "makedirs", "mkdir", "remove", "unlink", "format", "Path", "save", "is_file", "fspath", "startswith", "endswith", "insert",
    "read_checkpoint", "rmtree", "abspath", "split", "splitext", "len", "logger", "Logger", "echo", "write", "put", "set", "dict",
    "symlink", "urlparse", "urlsplit", "relpath", "realpath", "normpath", "expanduser", "islink", "lexists", "getmtime", "getctime", "repr", "heappush", "set_description", "setattr", "isinstance", "extend",
})  # fmt: skip
_TAKES_FILES = re.compile(
    r"artifact|upload|push|log_(?:model|file|asset|table)|add_(?:file|dir|reference)$|^wandb\.save$"
)
_COMMANDS = re.compile(r"^(?:subprocess\.\w+|os\.(?:system|popen|exec\w*|spawn\w*))$")
_LISTS = re.compile(r"^(?:glob\.i?glob|os\.(?:listdir|scandir|walk))$")
_LISTING_METHODS = frozenset({"glob", "rglob", "iterdir"})
_CLEANS = re.compile(
    r"(?:clean|prune|rotate|purge)_?(?:up|old|all|ckpts?|checkpoints?|saves?|saved|models?|files?|dirs?|folder)?$"
    r"|(?:remove|delete|keep|drop)_?(?:old|last|latest|extra|top|prev|n\b|k\b)|old_?(?:ckpt|checkpoint|model)",
    re.IGNORECASE,
)


def read_back(plan: Plan, found: Found) -> None:
    """Other loads of a path that is saved to read the checkpoint of the engine."""
    for save, call in _given(plan, found):
        if not plan.imports.names(call.func) & _LOADERS:
            continue
        if not _is_sure(plan, found, save, call) or not _shares_helpers(plan, save, call):
            plan.handled.add(call)
            plan.todo("MG622", call, f"a DeepSpeed checkpoint, which is a directory, may be read here: {how_to_read(plan)}",
                      "callers hand in its path beside others")  # fmt: skip
            need_helpers(plan, loading=True)
            plan.facts["keep_weights"] = True
            continue
        need_helpers(plan, loading=True)
        plan.facts["keep_weights"] = True
        read_instead(plan, found, call)
        plan.converted("MG622", call, "torch.load → read_checkpoint", "this path holds a DeepSpeed checkpoint now")
        if not found.loads:
            plan.edits.insert_after(plan.tree.statement(call).line_node, "_resume_requests.clear()")


def other_uses(plan: Plan, found: Found) -> None:
    """Mark who meets a directory where it met a file, or nothing where it met a checkpoint."""
    for save, call in _given(plan, found):
        if (
            call in plan.edits.expressions
            or call in plan.handled
            or plan.edits.is_removed(plan.tree.statement(call).node)
        ):
            continue
        if _asks_too_early(plan, save, call):
            plan.todo("MG623", call, "the checkpoint requested above is not written yet here: all ranks write it behind the guard",
                      "torch.save had written it by now")  # fmt: skip
        elif plan.imports.names(call.func) & MOVES and is_before_writing(plan, save, call, 2):
            plan.todo("MG623", call, f"{dotted(call.func)} finds no checkpoint here: the one requested before is written later, by all "
                      "ranks; request it under its final name, and copies of it as further requests",
                      "torch.save had written it by now; all ranks write it behind the guard")  # fmt: skip
        elif plan.imports.names(call.func) & MOVES:
            plan.todo("MG623", call, "a directory is moved here: it does not take the place of another one; remove that first",
                      "a DeepSpeed checkpoint is a directory")  # fmt: skip
        elif plan.flow.callee(call) is None and not _is_harmless(plan, save, call):
            plan.todo("MG623", call, f"{dotted(call.func) or 'this'} gets a directory now: a DeepSpeed checkpoint is one",
                      "it got a file before, and the checkpoint is written a little later")  # fmt: skip
    near = Near(plan, found)
    for save in found.saves:
        _counts(plan, save, near)


def _given(plan: Plan, found: Found) -> Iterator[tuple[Save, cst.Call]]:
    """The calls that get the path of a checkpoint, or are a method of it."""
    copied = [copy for save in found.saves for copy in copies_of(plan, save)]
    for save in [*found.saves, *copied]:
        names = _names_of(plan, save)
        for call in plan.tree.calls:
            if call is not save.call and call not in plan.handled and _gets(plan, save, names, call):
                yield save, call


def _gets(plan: Plan, save: Save, names: _Names, call: cst.Call) -> bool:
    function, statement = plan.function_of(call), plan.tree.statement(call)

    def is_path(node: Node) -> bool:
        return _holds(names, plan.flow.place(node, function), statement) or _is_same(plan, save, node, function)

    full = plan.imports.names(call.func)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS and is_path(call.func.value):
        return True
    if full & (_LOADERS | COPIES | MOVES):
        return bool(call.args) and (is_path(call.args[0].value) or meets(plan, save, call.args[0].value, function))
    taken = _takes_files(plan, call) and plan.flow.callee(call) is None
    if taken and any(
        plan.flow.place(node, function) in _folders_of(plan, save)
        for arg in call.args
        for node in descendants(arg.value)
    ):
        return True
    if taken or any(_COMMANDS.match(name) for name in full):
        return any(
            is_path(node)
            for arg in call.args
            for node in descendants(arg.value)
            if isinstance(node, cst.BaseExpression)
        )
    return any(is_path(node) for arg in call.args for node in _choices(arg.value))


def _folders_of(plan: Plan, save: Save) -> set[Place]:
    """The variables that hold the folder of a checkpoint: ``path.parent``, ``os.path.dirname(path)``."""
    known: dict[cst.Call, set[Place]] = plan.facts.setdefault("folders_of_paths", {})
    if save.call not in known:
        names = _names_of(plan, save)
        known[save.call] = {
            binding.place for binding in plan.flow.bindings
            if binding.index is None and binding.kind in ("assign", "argument") and _gives_folder(binding.value)
            if any(plan.flow.place(node, binding.function) in names for node in descendants(binding.value))
        }  # fmt: skip
    return known[save.call]


def _gives_folder(node: Node) -> bool:
    if isinstance(node, cst.Call):
        return (dotted(node.func) or "").rpartition(".")[2] == "dirname"
    return isinstance(node, cst.Attribute) and node.attr.value == "parent"


def _choices(node: Node) -> list[Node]:
    """What ``a or b`` may be, else the expression itself."""
    return [*_choices(node.left), *_choices(node.right)] if isinstance(node, cst.BooleanOperation) else [node]


def _is_same(plan: Plan, save: Save, node: Node, function: Function) -> bool:
    """Whether an expression is written as the path is, and means the same where it stands."""
    own = save.statement.function
    if function is not own and not (
        function.top is own.top and _is_global(plan, save.path, own) and _is_global(plan, node, function)
    ):
        return False
    return isinstance(node, cst.BaseExpression) and same_text(plan, node, save.path)


def _is_global(plan: Plan, path: Node, function: Function) -> bool:
    """Whether a path is made of constants, options and what the whole file shares: the same in every function."""
    if function.is_module:
        return True
    local = function.local_names - function.imported_names
    for name in descendants(path):
        if isinstance(name, cst.Name):
            parent = plan.tree.parent.get(name)
            in_attribute = isinstance(parent, cst.Attribute)
            if (name.value in local and not in_attribute) or name.value == function.self_name:
                return False
    return True


def _is_sure(plan: Plan, found: Found, save: Save, call: cst.Call) -> bool:
    """Whether a call gets the path of a checkpoint and no other: a parameter may also be given something else."""
    node, function = call.args[0].value, plan.function_of(call)
    written = [*found.saves, *(copy for one in found.saves for copy in copies_of(plan, one))]
    if is_one_of(plan, written, node, function):
        return True
    names, place = _names_of(plan, save), plan.flow.place(node, function)
    if not _holds(names, place, plan.tree.statement(call)) and not _is_same(plan, save, node, function):
        return False
    if not isinstance(node, cst.Name) or node.value not in function.params or place is None:
        return True
    return all(
        binding.kind == "argument"
        and (
            plan.flow.place(binding.value, binding.function) in names
            or _is_same(plan, save, binding.value, binding.function)
        )
        for binding in plan.flow.by_place.get(place, ())
    )


def _shares_helpers(plan: Plan, save: Save, call: cst.Call) -> bool:
    """Whether a load stands where the conversion's functions are, or can be imported: in the file of the save or the script."""
    part = plan.part_of(plan.tree.statement(call))
    return part in (plan.part_of(save.statement), plan.tree.parts[0])


def _names_of(plan: Plan, save: Save) -> _Names:
    """The variables that hold the path of a checkpoint: the one it is saved to, its aliases, and those of loops over it.

    A variable of a loop holds it inside of the loop alone, which is given with it. Parameters may hold it.
    """
    known: dict[cst.Call, _Names] = plan.facts.setdefault("names_of_paths", {})
    if save.call in known:
        return known[save.call]
    found: _Names = dict.fromkeys(_handed_in(plan, save.path, save.statement.function, 4))
    moves = [
        call for call in plan.tree.calls if len(call.args) > 1 and plan.imports.names(call.func) & (MOVES | COPIES)
    ]
    while True:
        more: _Names = {
            binding.place: binding.statement if binding.kind == "for" else None
            for binding in plan.flow.bindings
            if binding.kind in ("assign", "for", "argument") and binding.index is None and binding.place not in found
            and (
                any(plan.flow.place(node, binding.function) in found for node in _elements(binding.value))
                or (binding.kind == "argument" and binding.place[0] == "v" and _is_same(plan, save, binding.value, binding.function))
            )
        }  # fmt: skip
        for call in moves:
            function = plan.function_of(call)
            if plan.flow.place(call.args[0].value, function) in found:
                more |= dict.fromkeys(_handed_in(plan, call.args[1].value, function, 4) - found.keys())
        if not more:
            known[save.call] = found
            return found
        found |= more


def _handed_in(plan: Plan, path: Node, function: Function, depth: int) -> set[Place]:
    """The variable that a path stands in, and those of the callers that hand it in as an argument."""
    place = plan.flow.place(path, function)
    if place is None:
        return set()
    found = {place}
    for binding in plan.flow.by_place.get(place, ()) if depth else ():
        if binding.kind == "argument" and binding.index is None:
            found |= _handed_in(plan, binding.value, binding.function, depth - 1)
    return found


def _holds(names: _Names, place: Place | None, statement: Statement) -> bool:
    """Whether a variable holds the path where a statement stands."""
    if place is None or place not in names:
        return False
    loop = names[place]
    return loop is None or loop.order < statement.order <= loop.last_order


def _elements(node: Node) -> list[Node]:
    """What a value may be, or run over: the elements of a tuple, both branches of a choice."""
    if isinstance(node, cst.Tuple | cst.List):
        return [element.value for element in node.elements]
    if isinstance(node, cst.IfExp):
        return [*_elements(node.body), *_elements(node.orelse)]
    return [node] if isinstance(node, cst.Name | cst.Attribute) else []


def _asks_too_early(plan: Plan, save: Save, call: cst.Call) -> bool:
    """Whether a call asks for the path right behind the request, before the checkpoint can be there."""
    if (dotted(call.func) or "").rpartition(".")[2] not in _ASKS or not is_before_writing(plan, save, call):
        return False
    return not (call.args and _is_older(plan, save, call.args[0].value, plan.tree.statement(call)))


def _is_older(plan: Plan, save: Save, asked: Node, statement: Statement) -> bool:
    """Whether a variable gets the path only behind a statement of its function, which so finds an older one in it."""
    names, place = _names_of(plan, save), plan.flow.place(asked, statement.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    filled = [
        binding.statement
        for binding in bindings
        if any(plan.flow.place(node, binding.function) in names for node in _elements(binding.value))
    ]
    return bool(filled) and all(s.function is statement.function and s.order > statement.order for s in filled)


def _is_harmless(plan: Plan, save: Save, call: cst.Call) -> bool:
    names = plan.imports.names(call.func)
    if names & _SAVERS:  # a variable may get another path before the next file is saved
        return plan.function_of(call) is save.statement.function
    if _hands_bytes(plan, call):
        return True
    if _takes_files(plan, call):
        return False
    last = _last(call)
    if (last == "put" and len(call.args) > 1) or (last == "write" and _is_archive(plan, call)):
        return False
    return last in _HARMLESS or "log" in last.lower() or "print" in last.lower()


def _hands_bytes(plan: Plan, call: cst.Call) -> bool:
    """Whether a call gets a buffer in memory: the path beside it is only where that goes."""
    places = [plan.flow.place(arg.value, plan.function_of(call)) for arg in call.args]
    made = [[b.value for b in plan.flow.by_place.get(place, ())] for place in places if place is not None]
    return any(
        values and all(isinstance(one, cst.Call) and "io.BytesIO" in plan.imports.names(one.func) for one in values)
        for values in made
    )


def _is_archive(plan: Plan, call: cst.Call) -> bool:
    """Whether a method is that of ``zipfile.ZipFile(…)``, which takes of a directory only its name."""
    held = call.func.value if isinstance(call.func, cst.Attribute) else None
    place = plan.flow.place(held, plan.function_of(call)) if held is not None else None
    made = [held, *(b.value for b in plan.flow.by_place.get(place, ()))] if place is not None else [held]
    return any(isinstance(one, cst.Call) and "zipfile.ZipFile" in plan.imports.names(one.func) for one in made)


def _last(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else (dotted(call.func) or "")


def _takes_files(plan: Plan, call: cst.Call) -> bool:
    """Whether a call is one that takes a file to somewhere else, by its name."""
    return any(_TAKES_FILES.search(name) for name in {*plan.imports.names(call.func), _last(call)})


def _counts(plan: Plan, save: Save, near: Near) -> None:
    """Mark what lists the folder between the request and the writing, and cleaners of others that want files."""
    for call in plan.tree.calls:
        if call in plan.handled:
            continue
        callee = plan.flow.callee(call)
        cleans = callee is None and _CLEANS.search((dotted(call.func) or "").rpartition(".")[2])
        if cleans and any(near.reaches(call, arg.value) for arg in call.args):
            plan.todo("MG623", call, f"{dotted(call.func)} finds directories now: a DeepSpeed checkpoint is one",
                      "what removes or counts files does not find them, or fails")  # fmt: skip
        elif _lists(plan, call, near, callee) and is_before_writing(plan, save, call):
            plan.todo("MG623", call, "the checkpoint requested above is not there yet: what is counted here lacks it, and one more is kept; "
                      "do this behind save_requested_checkpoints",
                      "torch.save had written it by now; all ranks write it behind the guard")  # fmt: skip


def _lists(plan: Plan, call: cst.Call, near: Near, callee: Function | None) -> bool:
    """Whether a call lists a folder of checkpoints, by itself or in a function of the script."""
    if callee is not None:
        return any(
            statement.function is callee and _is_listing(plan, inner)
            for inner in plan.tree.calls for statement in (plan.tree.statement(inner),)
        )  # fmt: skip
    if not _is_listing(plan, call):
        return False
    asked = [arg.value for arg in call.args] + ([call.func.value] if isinstance(call.func, cst.Attribute) else [])
    return any(near.reaches(call, node) for node in asked)


def _is_listing(plan: Plan, call: cst.Call) -> bool:
    if any(_LISTS.match(name) for name in plan.imports.names(call.func)):
        return True
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _LISTING_METHODS


def is_before_writing(plan: Plan, save: Save, call: cst.Call, depth: int = 0) -> bool:
    """Whether a call, or one that leads to it, comes after the request and before all ranks write what was requested."""
    known: dict[cst.Call, list[_Stretch]] = plan.facts.setdefault("unwritten", {})
    if save.call not in known:
        known[save.call] = list(_stretches(plan, save.statement, 4))
    statement = plan.tree.statement(call)
    if any(statement.function is where and first < statement.order <= last for where, first, last in known[save.call]):
        return True
    callers = plan.flow.callers.get(statement.function, ()) if depth else ()
    return any(is_before_writing(plan, save, caller, depth - 1) for caller in callers)


def _stretches(plan: Plan, statement: Statement, depth: int) -> Iterator[_Stretch]:
    """What stands between a request, or the call that leads to one, and the place where the checkpoint is written."""
    anchors = [a for a in reached_by_all(plan, statement, 4) or () if a.function is statement.function]
    for anchor in anchors:
        yield statement.function, statement.last_order, anchor.last_order
    if not anchors and depth:
        yield statement.function, statement.last_order, len(plan.tree.statements)
        for call in plan.flow.callers.get(statement.function, ()) or calls_by_name(plan, statement.function):
            yield from _stretches(plan, plan.tree.statement(call), depth - 1)
