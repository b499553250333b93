"""Which checkpoints of a training can be directories of the engine, and what else touches their paths."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import Analysis, library_name, static_value
from dsmigrate.codemod.analysis.conditions import atoms_of
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening, groups_read
from dsmigrate.codemod.analysis.meeting import Meeting, is_group_gone, is_last, meetings, parting, speaks_of_rank
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Expr, Kind, Obj, Value, each, may_vary
from dsmigrate.codemod.program.module import Module


@dataclass(frozen=True, slots=True)
class Directories:
    """Checkpoints that become directories: their saves with the place behind which all ranks are, and their reads.

    ``states`` are the calls whose state the engine saves itself; ``touches`` what else happens to the paths; ``given`` which
    unread calls get one; ``unseen`` reads in functions that restore a training and that nothing is seen to call; ``names``
    what the files are called, as far as it is known.
    """

    saves: dict[Event, Meeting]
    reads: tuple[Event, ...]
    states: frozenset[ast.AST]
    touches: tuple[Event, ...]
    given: tuple[Event, ...]
    unseen: tuple[tuple[Module, ast.Call, str], ...]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Kept:
    """Why checkpoints have to stay files, and what says so."""

    event: Event
    why: str


def directories(training: Training) -> Directories | Kept | None:
    """The checkpoints with the optimizer's state as directories; why they stay files; None if there are none."""
    states = list(training.events(Happening.STATE))
    of_optimizer = {event.node for event in states if training.is_optimizer(event["of"])}
    of_model = {event.node for event in states if training.is_model(event["of"])}
    held = {event: frozenset(_states_in(event["content"])) for event in training.events(Happening.SAVE)}
    saves = [event for event, inside in held.items() if inside & of_optimizer and not training.is_before(event)]
    loads = [event for event in training.events(Happening.RESTORE) if training.is_optimizer(event["of"])]
    reads = {node for event in loads for node in _reads_of(event["content"])}
    found = _reads(training, saves, reads)
    met: dict[Event, Meeting] = {}
    for event, place in meetings(training, saves).items():
        why = "" if held[event] & of_model else "the optimizer's state is saved without the weights"
        why = why or _why_not(training, event, place)
        if place is None or why:
            return Kept(event, why or "not all ranks get to this save")
        met[event] = place
    for event, place in met.items():
        if any(place.node is not other.node and place.node in _way_to(one) for one, other in met.items()):
            return Kept(event, "not all ways to this save have all ranks")
    inside = frozenset[ast.AST]().union(*(held[event] for event in saves))
    for event in training.events(Happening.STATE, Happening.OPAQUE):
        if event.kind is Happening.OPAQUE:
            things = [value for name, value in event.what.items() if name.startswith("thing")]
            if any(map(training.is_optimizer, things)) and any(map(training.is_model, things)) and saves:
                if "read" not in event.what and not training.is_before(event):
                    return Kept(event, "a function that is not read is given the model and the optimizer")
        elif training.is_optimizer(event["of"]) and event.node not in inside and groups_read(event) is None:
            return Kept(event, "the optimizer's state goes elsewhere than into the dictionary of a torch.save")
    if not saves:
        return None
    for event in loads:
        why = _why_not_loaded(training, event, found)
        if why:
            return Kept(event, why)
    paths = {one for event in (*saves, *found) for one in each(event["path"])}
    every = list(_touches(training, paths))
    touches = [event for event in every if name_of(event)]
    odd = next((one for one in touches if not _is_plain(one)), None)
    if odd is not None:
        return Kept(odd, f"{name_of(odd).rpartition('.')[2]} needs a file")
    outside = frozenset[ast.AST]().union(*(nodes for event, nodes in held.items() if event not in saves))
    return Directories(
        met, tuple(found), inside - outside, tuple(touches),
        tuple(event for event in every if not name_of(event)), tuple(_unseen(training)),
        frozenset(filter(None, (file_name(training.analysis, one) for event in saves for one in each(event["path"])))),
    )  # fmt: skip


TOUCHES = {
    "torch.load": "load", "os.path.isfile": "exists", "is_file": "exists", "os.remove": "remove", "os.unlink": "remove",
    "shutil.copyfile": "copy", "shutil.copy": "copy", "shutil.copy2": "copy",
}  # fmt: skip
"""What may happen to a path that is a directory too, by what does it to a file."""


def file_name(analysis: Analysis, path: Value) -> str | None:
    """The last part of a path, which other scripts name it by; None where it is not known."""
    match path:
        case Const(value=str(text)):
            return posixpath.basename(text) or None
        case Expr(op="path" | "/", args=(*_, Const() as last)):
            return file_name(analysis, last)
        case Expr(op="text" | "+", args=(*_, Const(value=str(text)))) if "/" in text:
            return posixpath.basename(text) or None
        case Expr(op="arg" | "setting"):
            default = static_value(analysis, path)
            return posixpath.basename(default) or None if isinstance(default, str) else None
    return None


def uses_of(analysis: Analysis, names: frozenset[str]) -> Iterator[Event]:
    """What a script does with files of some names."""
    for event in analysis.of(Happening.READ, Happening.FILE):
        given = [one for name, path in event.what.items() if name.startswith("path") for one in each(path)]
        if any(file_name(analysis, one) in names for one in given):
            yield event


def _is_plain(event: Event) -> bool:
    """Whether it can be done to a directory in the same words: two paths for a copy, whose result nobody takes."""
    node = event.node
    what = TOUCHES.get(name_of(event))
    if what in {None, "exists"} or not isinstance(node, ast.Call):
        return what is not None and isinstance(node, ast.Call)
    statement = event.module.step(node).node
    is_alone = isinstance(statement, ast.Expr) and statement.value is node
    return is_alone and not node.keywords and len(node.args) == (2 if what == "copy" else 1)


def name_of(event: Event) -> str:
    """The function that does something to a file."""
    name = event["name"]
    return str(name.value) if isinstance(name, Const) else ""


def _within(value: Value) -> Iterator[Value]:
    """What a value may be, with all that is in its dictionaries and in those within them."""
    pending, seen = list(each(value)), set[Value]()
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            yield one
            if isinstance(one, Obj) and one.kind is Kind.DICT:
                pending += [inner for held in one.own.values() for inner in each(held)]


def _states_in(value: Value) -> Iterator[ast.AST]:
    """The calls whose states are in a dictionary, and in dictionaries in it."""
    for one in _within(value):
        if isinstance(one, Obj) and "state_dict_of" in one.data and one.node is not None:
            yield one.node


def _reads_of(value: Value) -> Iterator[ast.AST]:
    """The calls that read what a value comes from; its items may have been put into another dictionary."""
    for one in _within(value):
        if isinstance(one, Expr):
            if one.op == "loaded":
                yield one.args[1]
            else:
                for arg in one.args:
                    if isinstance(arg, Expr):
                        yield from _reads_of(arg)


def _reads(training: Training, saves: list[Event], nodes: set[ast.AST]) -> list[Event]:
    """The reads of checkpoints: those the optimizer is restored from, and others of their paths."""
    every = list(training.events(Happening.READ))
    paths = {one for event in (*saves, *(one for one in every if one.node in nodes)) for one in each(event["path"])}
    return [
        event
        for event in every
        if not any(_is_call_of(event, name) for name in _OF_THE_WEB)
        if event.node in nodes or any(one in paths for one in each(event["path"]))
    ]


_OF_THE_WEB = ("torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url")
"""What reads a file that somebody has published."""


def _is_call_of(event: Event, name: str) -> bool:
    return isinstance(event.node, ast.Call) and library_name(event.node.func, event.names) == name


def _why_not(training: Training, event: Event, place: Meeting | None) -> str:
    if not _is_call_of(event, "torch.save"):
        return "what saves here is not torch.save itself"
    if not all(isinstance(one, Const | Expr) for one in each(event["path"])):
        return "it is saved into an open file, not at a path"
    if is_group_gone(training, event):
        return "the process group has ended before this save"
    if is_last(training, event):
        return "a rank that fails gets to this save alone"
    if place is None:
        return ""
    if parting(training, event) is None and may_vary(event["path"]):
        return "each rank saves at a path of its own"
    if place.node not in _way_to(event) or _is_left(place.node):
        return "no line behind this save is reached by all ranks"
    return ""


def _way_to(event: Event) -> set[ast.stmt]:
    """The statements that an event is in, across calls."""
    calls = [block for block in event.block.around() if block.kind is BlockKind.CALL]
    return {
        step.node
        for module, node in ((event.module, event.node), *((one.module, one.node) for one in calls))
        if module is not None and node is not None
        for step in module.step(node).around()
    }


def _is_left(statement: ast.stmt) -> bool:
    """Whether a statement may be left otherwise than at its end."""
    pending: list[tuple[ast.AST, bool]] = [(statement, False)]
    while pending:
        node, in_loop = pending.pop()
        if isinstance(node, ast.Return | ast.Raise) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        inner = in_loop or isinstance(node, ast.For | ast.AsyncFor | ast.While)
        pending += [(one, inner) for one in ast.iter_child_nodes(node)]
    return False


def _unseen(training: Training) -> Iterator[tuple[Module, ast.Call, str]]:
    """Calls of torch.load, with no read of theirs, in functions that restore the state of more than one thing.

    And those that ask for the same path.
    """
    seen = {event.node for event in training.events(Happening.READ)}
    for path, module in training.modules.items():
        names = (training.analysis.run.modules[path].own,)
        for function in ast.walk(module.tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and node not in seen]
            restored = {ast.unparse(one.func) for one in calls if isinstance(one.func, ast.Attribute)}
            if sum(one.endswith(".load_state_dict") for one in restored) < 2:
                continue
            named = [(one, library_name(one.func, names), ast.unparse(one.args[0])) for one in calls if one.args]
            paths = {path for _, name, path in named if name == "torch.load"}
            yield from (
                (module, one, name)
                for one, name, path in named
                if name is not None and path in paths and name in {"torch.load", "os.path.isfile"}
            )


def _why_not_loaded(training: Training, event: Event, reads: list[Event]) -> str:
    nodes = set(_reads_of(event["content"]))
    own = [one for one in reads if one.node in nodes]
    if not own:
        return "what the optimizer loads is not read by torch.load itself"
    if not all(_is_call_of(one, "torch.load") for one in own):
        return "what reads it is not torch.load itself"
    if not all(isinstance(path, Const | Expr) for one in own for path in each(one["path"])):
        return "it is read from an open file, not from a path"
    if any(speaks_of_rank(atom) for block in event.block.around() for atom in atoms_of(block.test)):
        return "only some ranks load the optimizer's state"
    if not any(
        training.is_model(one["of"]) and nodes.intersection(_reads_of(one["content"]))
        for one in training.events(Happening.RESTORE)
    ):
        return "the optimizer's state is loaded without the weights beside it"
    return ""


def _touches(training: Training, paths: set[Value]) -> Iterator[Event]:
    """What else happens to the paths and to their copies; what is removed may be a checkpoint wherever its path is not known."""
    known = set(paths)
    for event in training.events(Happening.FILE):
        of = [one for name, path in event.what.items() if name.startswith("path") for one in each(path)]
        if any(one in known for one in of):
            known.update(of)
            yield event
        elif TOUCHES.get(name_of(event)) == "remove" and not all(isinstance(one, Const) for one in of):
            yield event


def changed_in(training: Training, place: Meeting, test: str) -> bool:
    """Whether something that a test names is changed in a statement, or in a function that it calls."""
    named = {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(ast.parse(test))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    inside = set(ast.walk(place.node))
    calls = [
        one
        for block in training.analysis.root.blocks()
        if block.kind is BlockKind.CALL and block.node in inside
        for one in block.blocks()
    ]
    functions = {one.label.node for one in calls if isinstance(one.label, Obj) and one.label.node is not None}
    return any(
        (isinstance(node, ast.Name) and node.id in named) or (isinstance(node, ast.Attribute) and node.attr in named)
        for code in (place.node, *functions)
        for node in ast.walk(code)
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    )
