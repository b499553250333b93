"""MG62x: resume checkpoints become DeepSpeed checkpoints, weights-only exports stay.

A DeepSpeed checkpoint is a directory that all ranks write together, while scripts save under a rank guard, often deep
inside helpers, at a path that only rank 0 works out. So the guarded place *requests* the checkpoint (as it called
``torch.save``), and behind the guard all ranks save what rank 0 requested. What the script put into its dictionary
(epoch, scheduler, scaler, EMA, RNG state) travels as client state under one key, so that no name can collide with
DeepSpeed's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from dsmigrate.codemod.flow import Binding, argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.loop import find_backward
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG621",
        "A resume checkpoint is saved by the engine",
        "What torch.save wrote under a rank guard is requested there and saved by all ranks behind the guard.",
        "The optimizer state is spread over the ranks and engine.save_checkpoint is collective: under a rank guard it "
        "waits for ever. The path keeps its meaning: its directory holds the checkpoint, its last part is the tag.",
        "engine-semantics 13-14; https://github.com/deepspeedai/DeepSpeed/issues/2993",
        Kind.CONVERTED,
    ),
    Idea(
        "MG622",
        "A resume checkpoint is loaded by the engine",
        "Weights and optimizer state come back through engine.load_checkpoint; the script's own entries as before.",
        "Weights loaded into the module after initialize are undone by the next step at ZeRO 1-3, where the master copy "
        "wins. Checkpoints that the DDP script wrote cannot be read.",
        "engine-semantics 12-13",
        Kind.CONVERTED,
    ),
    Idea(
        "MG623",
        "A checkpoint is a directory",
        "isfile, is_file, copyfile and remove become exists, another save and rmtree.",
        "os.path.isfile would be false for a DeepSpeed checkpoint, and training would silently start from scratch.",
        "engine-semantics 14",
        Kind.CONVERTED,
    ),
    Idea(
        "MG624",
        "A weights-only export stays",
        "torch.save of model.state_dict() writes the whole model at ZeRO 0, 1 and 2.",
        "At ZeRO 3 the module holds empty tensors unless the parameters are gathered on all ranks.",
        "engine-semantics 16",
        Kind.KEPT,
    ),
    Idea(
        "MG625",
        "Weights are loaded after the engine is made",
        "load_state_dict on the module is undone by the next step at ZeRO 1-3.",
        "The engine's master copy was taken before. Load the weights before deepspeed.initialize.",
        "engine-semantics 12",
        Kind.TODO,
    ),
    Idea(
        "MG626",
        "The optimizer state goes through a helper of another module",
        "A function outside this file saves or loads the optimizer's state.",
        "At ZeRO 1-3 the optimizer object holds this rank's part only; engine.save_checkpoint and load_checkpoint have to "
        "take over in that helper.",
        "engine-semantics 13",
        Kind.TODO,
    ),
    Idea(
        "MG627",
        "Optimizer state used outside a checkpoint",
        "optimizer.state_dict() and optimizer.state hold this rank's flat partition at ZeRO 1-3.",
        "Reads of the learning rate through param_groups are fine; reads of the state are not.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.TODO,
    ),
    Idea(
        "MG507",
        "A loader of another module got the wrapped model",
        "Between the old wrap and the engine a helper receives the plain model, whose keys have no 'module.' prefix.",
        "A state dict of a DDP model has the prefix, one of the plain model has not; whether the helper copes is not known.",
        "torch.nn.parallel.DistributedDataParallel, state_dict",
        Kind.TODO,
    ),
    Idea(
        "MG629",
        "A checkpoint through an open file or buffer",
        "torch.save and torch.load work on a handle here; DeepSpeed saves to and loads from directories.",
        "Uploads to object stores and in-memory buffers have to be done with the directory that engine.save_checkpoint wrote.",
        "deepspeed/runtime/engine.py, save_checkpoint",
        Kind.TODO,
    ),
    Idea(
        "MG628",
        "Weights are gathered for an export at ZeRO 3",
        "GatheredParameters on all ranks around the rank guard, a no-op below stage 3.",
        "state_dict() has shapes (0,) at ZeRO 3 otherwise.",
        "engine-semantics 16",
        Kind.CONVERTED,
    ),
)

_RANKISH = re.compile(
    r"rank|is_main|is_master|main_process|master_process|is_primary|primary|is_chief|\bmaster\b|is_root|is_global_zero|"
    r"\bgpu(?:_id)?\b\s*==\s*0|is_logger|local_master|get_rank",
    re.IGNORECASE,
)
_COUNTER = re.compile(
    r"^(?:__name__|\w*(?:epoch|step|iter|idx|index|batch_i|it|num|count|ep|update)s?\w*|i|j|k|n|e|t|self|args|opt|opts|cfg|config|conf|"
    r"hparams|params|FLAGS|len|True|False|None|int|math|\w*(?:interval|freq|every|total|max|last|loader|dataloader)\w*)$",
    re.IGNORECASE,
)
_SAVERS = frozenset({"torch.save", "torch.serialization.save"})
_SAVER_NAMES = frozenset({"save_on_master", "save_checkpoint_on_master", "safe_save"})

_HELPERS = '''_checkpoint_requests = []


def request_checkpoint(state, path):
    """Ask for a checkpoint, from under a rank guard; save_requested_checkpoints writes it on all ranks."""
    _checkpoint_requests.append((state, os.fspath(path)))


def save_requested_checkpoints(engine):
    """Save what rank 0 asked for. Saving is collective: every rank has to come here."""
    paths = [[path for _, path in _checkpoint_requests]]
    states = [state for state, _ in _checkpoint_requests]
    _checkpoint_requests.clear()
    torch.distributed.broadcast_object_list(paths, src=0)
    for index, path in enumerate(paths[0]):
        state = states[index] if torch.distributed.get_rank() == 0 else None
        engine.save_checkpoint(os.path.dirname(path) or ".", tag=os.path.basename(path), client_state={"script": state})
'''
_LOAD_HELPERS = '''_resume_requests = []


def read_checkpoint(path):
    """What the script itself put into a DeepSpeed checkpoint; the engine's part is loaded by resume_engine."""
    files = sorted(glob.glob(os.path.join(glob.escape(os.fspath(path)), "*mp_rank_00_model_states.pt")))
    if not files and os.path.exists(path):
        raise RuntimeError(f"{path} is no DeepSpeed checkpoint; a file of the DDP script cannot be resumed")
    if not files:
        raise FileNotFoundError(path)
    _resume_requests.append(os.fspath(path))
    return torch.load(files[0], map_location="cpu", weights_only=False)["script"]


def resume_engine(engine):
    """Load weights and optimizer state of the checkpoint that rank 0 read last, if any. All ranks come here."""
    path = [_resume_requests[-1] if _resume_requests else None]
    _resume_requests.clear()
    torch.distributed.broadcast_object_list(path, src=0)
    if path[0] is not None:
        engine.load_checkpoint(os.path.dirname(path[0]) or ".", tag=os.path.basename(path[0]))
'''
_FILES_TOO = """    if os.path.isfile(path):
        print(f"{path} is a file, no DeepSpeed checkpoint: an optimizer state in it is not restored")
        return torch.load(path, map_location="cpu", weights_only=False)
"""
_REMOVE_HELPER = '''def remove_checkpoint(path):
    """Remove a checkpoint: a directory of DeepSpeed, or a file of the script before."""
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.remove(path)
'''
_PARTITIONED = 3
_SAVED = '"saved by the engine"'


@dataclass(slots=True)
class _Save:
    """One save of a resume checkpoint: the call, what is saved and where to."""

    call: cst.Call
    statement: Statement
    state: Node
    path: Node


@dataclass(slots=True)
class _Found:
    saves: list[_Save] = field(default_factory=list)
    exports: list[_Save] = field(default_factory=list)
    loads: list[cst.Call] = field(default_factory=list)
    optimizer_loads: list[cst.Call] = field(default_factory=list)
    model_loads: list[cst.Call] = field(default_factory=list)


def run(plan: Plan) -> None:
    """Convert resume checkpoints and keep exports."""
    found = _find(plan)
    _loads(plan, found)
    _saves(plan, found)
    _exports(plan, found)
    _pretrained(plan)
    _late_weights(plan, found)
    _outside_helpers(plan)
    _stray_state(plan)


# -- finding -------------------------------------------------------------------------------------------------------


def _find(plan: Plan) -> _Found:
    found = _Found()
    for call in plan.tree.calls:
        func = call.func
        names = plan.imports.names(func)
        last = (dotted(func) or "").rpartition(".")[2]
        if names & _SAVERS or (last in _SAVER_NAMES and len(call.args) >= 2):
            state, path = argument(call, 0, "obj"), argument(call, 1, "f")
            if state is None or path is None:
                continue
            save = _Save(call, plan.tree.statement(call), state, path)
            if _holds_optimizer(plan, state, save.statement.function, 6):
                found.saves.append(save)
            elif _holds_model(plan, state, save.statement.function, 6):
                found.exports.append(save)
        elif isinstance(func, cst.Attribute) and func.attr.value == "load_state_dict":
            if plan.roles.is_optimizer(func.value):
                found.optimizer_loads.append(call)
            elif plan.is_ours(func.value):
                found.model_loads.append(call)
    seen: set[Node] = set()
    for call in found.optimizer_loads:
        for load in _origins(plan, call):
            if load not in seen:
                seen.add(load)
                found.loads.append(load)
    return found


def _state_calls(plan: Plan, node: Node) -> list[tuple[cst.Call, str]]:
    """``x.state_dict()`` calls within an expression, with what x is: ``O`` optimizer, ``M`` model."""
    found = []
    for sub in descendants(node):
        if isinstance(sub, cst.Call) and isinstance(sub.func, cst.Attribute) and sub.func.attr.value == "state_dict":
            base = sub.func.value
            if plan.roles.is_optimizer(base):
                found.append((sub, "O"))
            elif plan.is_ours(base):
                found.append((sub, "M"))
    return found


def _sources(plan: Plan, node: Node, function: Function, depth: int) -> list[tuple[Node, Function]]:
    """Expressions that what is saved is built from: the dictionary itself, and item assignments into it."""
    if depth == 0:
        return []
    if isinstance(node, cst.Name | cst.Attribute):
        place = plan.flow.place(node, function)
        found: list[tuple[Node, Function]] = []
        for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
            found.extend(_sources(plan, binding.value, binding.function, depth - 1))
        if place is not None:
            found.extend(_items(plan, place))
        return found
    if isinstance(node, cst.Call):
        callee = plan.flow.callee(node)
        if callee is not None and callee.name != "__init__":
            found = [(node, function)]
            for binding in plan.flow.by_place.get(plan.flow.returned(callee), ()):
                found.extend(_sources(plan, binding.value, binding.function, depth - 1))
            return found
    return [(node, function)]


def _items(plan: Plan, place: object) -> list[tuple[Node, Function]]:
    found: list[tuple[Node, Function]] = []
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.Assign):
            for target in node.targets:
                inner = target.target
                if isinstance(inner, cst.Subscript) and plan.flow.place(inner.value, statement.function) == place:
                    found.append((node.value, statement.function))
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            func = node.value.func
            if isinstance(func, cst.Attribute) and func.attr.value == "update":
                if plan.flow.place(func.value, statement.function) == place:
                    found.append((node.value, statement.function))
    return found


def _holds_optimizer(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    return any(
        kind == "O" for source, _ in _sources(plan, node, function, depth) for _, kind in _state_calls(plan, source)
    )


def _holds_model(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    for source, where in _sources(plan, node, function, depth):
        if _state_calls(plan, source):
            return True
        if isinstance(source, cst.Name | cst.Attribute) and any(t[0] in "ER" for t in plan.roles.of(source, where)):
            return True
    return isinstance(node, cst.Name | cst.Attribute) and any(t[0] in "ER" for t in plan.roles.of(node, function))


def _origins(plan: Plan, call: cst.Call) -> list[cst.Call]:
    """The ``torch.load`` calls that a ``load_state_dict`` argument comes from."""
    if not call.args:
        return []
    found: list[cst.Call] = []
    queue: list[tuple[Node, Function, int]] = [(call.args[0].value, plan.function_of(call), 6)]
    seen: set[object] = set()
    while queue:
        node, function, depth = queue.pop()
        if depth == 0:
            continue
        for sub in descendants(node):
            if isinstance(sub, cst.Call) and plan.imports.names(sub.func) & {"torch.load", "torch.serialization.load"}:
                found.append(sub)
            elif isinstance(sub, cst.Name | cst.Attribute):
                place = plan.flow.place(sub, function)
                if place is None or place in seen:
                    continue
                seen.add(place)
                bindings = plan.flow.by_place.get(place, ())
                if function is plan.function_of(call):
                    bindings = _reaching(bindings, plan.tree.statement(call))
                queue.extend((b.value, b.function, depth - 1) for b in bindings)
    return found


def _reaching(bindings: Sequence[Binding], use: Statement) -> list[Binding]:
    """The bindings of a variable that may hold at a use: the last one before it, with its twins in other branches."""
    before = [b for b in bindings if b.function is use.function and b.statement.order < use.order]
    if not before or len(before) == len(bindings) == 1:
        return list(bindings)
    last = max(before, key=lambda b: b.statement.order)
    around = [o for o in last.statement.enclosing() if not o.order < use.order <= o.last_order]
    if not around:
        return [last]
    outermost = around[-1]
    return [b for b in before if outermost.order < b.statement.order <= outermost.last_order]


# -- loading -------------------------------------------------------------------------------------------------------


def _loads(plan: Plan, found: _Found) -> None:
    if not found.optimizer_loads:
        return
    if not found.loads:
        for call in found.optimizer_loads:
            plan.todo("MG626", call, "the optimizer state comes from outside this file: load it with engine.load_checkpoint",
                      "the client optimizer holds this rank's flat partition at ZeRO 1-3")  # fmt: skip
        return
    handles = [load for load in found.loads if _is_handle(plan, argument(load, 0, "f"), load)]
    if handles:
        for load in handles:
            plan.todo("MG629", load, "this resume checkpoint is read from an open file: use engine.load_checkpoint(dir, tag)",
                      "a DeepSpeed checkpoint is a directory")  # fmt: skip
        plan.facts["keep_weights"] = True
        return
    _convert_loads(plan, found)
    _restore_optimizer(plan, found)
    _restore_weights(plan, found)
    _need_helpers(plan, loading=True)


def _is_handle(plan: Plan, node: Node | None, call: cst.Call) -> bool:
    """Whether an argument is an open file or a buffer rather than a path."""
    if node is None:
        return True
    if isinstance(node, cst.Call):
        return (dotted(node.func) or "").rpartition(".")[2] in ("open", "BytesIO")
    place = plan.flow.place(node, plan.function_of(call))
    for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
        value = binding.value
        if isinstance(value, cst.Call) and (dotted(value.func) or "").rpartition(".")[2] in (
            "open",
            "BytesIO",
            "fdopen",
        ):
            return True
    return False


def _convert_loads(plan: Plan, found: _Found) -> None:
    for load in found.loads:
        path = argument(load, 0, "f")
        plan.edits.replace(load, lambda call: cst.Call(cst.Name("read_checkpoint"), [_bare(call.args[0])]))  # type: ignore[attr-defined]
        plan.handled.add(load)
        statement = plan.tree.statement(load)
        plan.converted("MG622", statement, "torch.load → read_checkpoint: the script's entries of a DeepSpeed checkpoint",
                       "the engine's part is loaded by resume_engine")  # fmt: skip
        if path is not None:
            _file_tests(plan, path, statement.function)


def _restore_optimizer(plan: Plan, found: _Found) -> None:
    resumed_early = False
    for call in found.optimizer_loads:
        statement = plan.tree.statement(call)
        engine = plan.engine_in(call)
        early = plan.is_before_engine(call) or engine is None
        if not isinstance(statement.node, cst.Expr):
            plan.todo(
                "MG622", statement, "the value of load_state_dict is used; resume_engine gives none", "it has no result"
            )
            continue
        guard = _rank_guard(plan, statement)
        if early:
            plan.edits.remove(statement.node)
            resumed_early = True
        elif guard is not None:
            plan.edits.remove(statement.node)
            plan.edits.insert_after(guard.line_node, f"resume_engine({engine})")
        else:
            plan.edits.substitute(statement.node, f"resume_engine({engine})")
        plan.handled.add(call)
        plan.converted("MG622", statement, "optimizer.load_state_dict → engine.load_checkpoint (resume_engine)",
                       "the optimizer state is spread over the ranks")  # fmt: skip
    if resumed_early and plan.site is not None:
        plan.after_engine.append(f"resume_engine({plan.site.target})")


def _rank_guard(plan: Plan, statement: Statement) -> Statement | None:
    """The outermost ``if`` around a statement that lets only some ranks in."""
    found = None
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and _RANKISH.search(plan.code(outer.node.test)):
            found = outer
    return found


def _restore_weights(plan: Plan, found: _Found) -> None:
    """Weights of a resumed checkpoint come from the engine; loads before it exists stay, so that plain files work too."""
    keys: set[str] = set()
    for call in found.model_loads:
        if not set(_origins(plan, call)) & set(found.loads):
            continue
        statement = plan.tree.statement(call)
        plan.handled.add(call)
        if plan.is_before_engine(call) or not isinstance(statement.node, cst.Expr | cst.Assign):
            plan.facts["keep_weights"] = True
            plan.facts["files_too"] = True
            continue
        key = _key(call.args[0].value) if call.args else None
        if key is None:
            plan.facts["keep_weights"] = True
        else:
            keys.add(key)
        strict = argument(call, 1, "strict")
        if strict is not None and dotted(strict) == "False":
            plan.facts["not_strict"] = True
        plan.edits.remove(statement.node)
        plan.converted("MG622", statement, "model.load_state_dict removed: the engine restores the weights",
                       "weights loaded after initialize are undone at ZeRO 1-3")  # fmt: skip
    plan.facts["weight_keys"] = keys


def _bare(arg: cst.Arg) -> cst.Arg:
    return cst.Arg(arg.value)


def _key(node: Node) -> str | None:
    """The key of ``checkpoint["key"]`` (or an attribute ``snapshot.key``), where nothing is done to the value."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        value = node.slice[0].slice.value
        return str(value.evaluated_value) if isinstance(value, cst.SimpleString) else None
    return None


def _file_tests(plan: Plan, path: Node, function: Function) -> None:
    """``os.path.isfile(path)`` and ``Path.is_file()`` on a checkpoint path become tests for existence."""
    text = plan.code(path)
    place = plan.flow.place(path, function)
    for call in plan.tree.calls:
        func = call.func
        if "os.path.isfile" in plan.imports.names(func) and call.args:
            tested = call.args[0].value
            if plan.code(tested) == text or (place is not None and plan.place_of(tested) == place):
                plan.edits.replace(func, plan.code(func).replace("isfile", "exists"))
                plan.converted("MG623", call, "isfile → exists", "a DeepSpeed checkpoint is a directory")
        elif isinstance(func, cst.Attribute) and func.attr.value == "is_file":
            tested = func.value
            if plan.code(tested).strip("()") == text.strip("()") or plan.place_of(tested) == place is not None:
                plan.edits.replace(func.attr, lambda _: cst.Name("exists"))
                plan.converted("MG623", call, "is_file → exists", "a DeepSpeed checkpoint is a directory")


def _need_helpers(plan: Plan, *, loading: bool) -> None:
    plan.need("os")
    plan.need("torch")
    text = _LOAD_HELPERS if loading else _HELPERS
    if loading:
        plan.need("glob")
        if plan.facts.get("not_strict"):
            loaded = "tag=os.path.basename(path[0]))"
            text = text.replace(loaded, loaded[:-1] + ", load_module_strict=False)")
        if plan.facts.get("files_too"):
            mark = "    files = sorted("
            text = text.replace(mark, _FILES_TOO + mark).replace("; a file of the DDP script cannot be resumed", "")
    if text not in plan.helpers:
        plan.helpers.append(text)


# -- saving --------------------------------------------------------------------------------------------------------


def _saves(plan: Plan, found: _Found) -> None:
    for save in list(found.saves):
        if _is_handle(plan, save.path, save.call):
            found.saves.remove(save)
            for source, _ in _sources(plan, save.state, save.statement.function, 6):
                plan.handled.update(call for call, _ in _state_calls(plan, source))
            plan.todo("MG629", save.call, "this resume checkpoint is written to an open file: use engine.save_checkpoint on all ranks",
                      "a DeepSpeed checkpoint is a directory")  # fmt: skip
    if not found.saves:
        return
    _need_helpers(plan, loading=False)
    _read_back(plan, found)
    removed = plan.facts.get("weight_keys", set())
    keep_weights = bool(plan.facts.get("keep_weights")) or not removed
    points: set[Node] = set()
    for save in found.saves:
        _hollow(plan, save, keep_weights=keep_weights)
        plan.edits.replace(save.call, _request)
        plan.handled.add(save.call)
        plan.converted("MG621", save.statement, f"{plan.code(save.call.func)} → request_checkpoint; all ranks save behind the guard",
                       "DeepSpeed checkpoints are collective")  # fmt: skip
        _copies(plan, save)
        if not _behind_guard(plan, save.statement, points):
            plan.todo("MG621", save.statement, "call save_requested_checkpoints(engine) on all ranks after this",
                      "no place that all ranks reach and that can name the engine was found")  # fmt: skip


def _read_back(plan: Plan, found: _Found) -> None:
    """Other uses of a path that is saved to: tests for a file, loads of it, calls of other modules that get it."""
    for save in found.saves:
        _file_tests(plan, save.path, save.statement.function)
        place = plan.flow.place(save.path, save.statement.function)
        text = plan.code(save.path)
        for call in plan.tree.calls:
            if call is save.call or call in plan.handled or not call.args:
                continue
            function = plan.function_of(call)
            first = call.args[0].value
            same = (place is not None and plan.flow.place(first, function) == place) or (
                plan.code(first) == text and function is save.statement.function
            )
            if not same or isinstance(first, cst.SimpleString):
                continue
            if plan.imports.names(call.func) & {"torch.load", "torch.serialization.load"}:
                _need_helpers(plan, loading=True)
                plan.facts["keep_weights"] = True
                plan.edits.replace(call, lambda c: cst.Call(cst.Name("read_checkpoint"), [_bare(c.args[0])]))  # type: ignore[attr-defined]
                plan.handled.add(call)
                plan.converted(
                    "MG622", call, "torch.load → read_checkpoint", "this path holds a DeepSpeed checkpoint now"
                )
                if not found.loads:
                    plan.edits.insert_after(plan.tree.statement(call).line_node, "_resume_requests.clear()")
            elif plan.flow.callee(call) is None and not _is_harmless_with_path(call):
                plan.todo("MG623", call, f"{dotted(call.func) or 'this'} gets a directory now: a DeepSpeed checkpoint is one",
                          "it got a file before, and the checkpoint is written a little later")  # fmt: skip


_HARMLESS_WITH_PATH = frozenset({
    "print", "join", "exists", "isfile", "isdir", "dirname", "basename", "info", "debug", "warning", "log", "append", "str",
    "makedirs", "mkdir", "remove", "unlink", "copyfile", "copy", "copy2", "format", "Path", "save", "is_file", "fspath",
    "read_checkpoint", "rmtree", "abspath", "split", "splitext", "len", "logger", "Logger", "echo", "write",
})  # fmt: skip


def _is_harmless_with_path(call: cst.Call) -> bool:
    last = (dotted(call.func) or "").rpartition(".")[2]
    return last in _HARMLESS_WITH_PATH or "log" in last.lower() or "print" in last.lower()


def _request(call: Node) -> Node:
    assert isinstance(call, cst.Call)
    arguments = [arg.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT) for arg in call.args[:2]]
    arguments[-1] = arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(func=cst.Name("request_checkpoint"), args=arguments)


def _hollow(plan: Plan, save: _Save, *, keep_weights: bool) -> None:
    """Entries that the engine saves itself become None, so that every key is still there."""
    for source, _ in _sources(plan, save.state, save.statement.function, 6):
        for call, kind in _state_calls(plan, source):
            if call in plan.edits.expressions:
                continue
            if kind == "M" and keep_weights:
                if plan.zero_stage == _PARTITIONED:
                    _gather(plan, plan.tree.statement(call))
                continue
            plan.edits.replace(call, _SAVED)
            plan.handled.add(call)
            what = "optimizer state" if kind == "O" else "weights"
            plan.converted("MG621", call, f"{plan.code(call)} → a note: the engine saves the {what}",
                           "the engine's checkpoint holds it, spread over the ranks")  # fmt: skip


def _copies(plan: Plan, save: _Save) -> None:
    """``shutil.copyfile(path, best)`` becomes another request; removing old checkpoints removes directories."""
    text = plan.code(save.path)
    for call in plan.tree.calls:
        names = plan.imports.names(call.func)
        if names & {"shutil.copyfile", "shutil.copy", "shutil.copy2"} and len(call.args) >= 2:
            if plan.code(call.args[0].value) == text and plan.function_of(call) is save.statement.function:
                target = plan.code(call.args[1].value)
                plan.edits.replace(call, f"request_checkpoint({plan.code(save.state)}, {target})")
                plan.converted(
                    "MG623", call, "copying the checkpoint → a second request", "a DeepSpeed checkpoint is a directory"
                )
        elif names & {"os.replace", "os.rename", "shutil.move"} and len(call.args) >= 2:
            statement = plan.tree.statement(call)
            if plan.code(call.args[0].value) == text and statement.function is save.statement.function:
                target = plan.code(call.args[1].value)
                if isinstance(statement.node, cst.Expr):
                    plan.edits.replace(save.path, target)
                    plan.edits.remove(statement.node)
                    plan.converted(
                        "MG623",
                        call,
                        "the checkpoint is saved under its final name",
                        "it is written later, by all ranks",
                    )
        elif names & {"os.remove", "os.unlink"} and plan.function_of(call) is save.statement.function and call.args:
            plan.need("shutil")
            plan.edits.replace(call.func, "remove_checkpoint")
            if _REMOVE_HELPER not in plan.helpers:
                plan.helpers.append(_REMOVE_HELPER)
            plan.converted(
                "MG623", call, f"{plan.code(call.func)} → remove_checkpoint", "a DeepSpeed checkpoint is a directory"
            )


def _behind_guard(plan: Plan, statement: Statement, points: set[Node]) -> bool:
    """Insert the collective save behind everything that only some ranks may run; False where no place is found."""
    anchors = _reached_by_all(plan, statement, 4)
    if anchors is None:
        return False
    for anchor in anchors:
        if anchor.line_node in points:
            continue
        points.add(anchor.line_node)
        line = f"save_requested_checkpoints({plan.engine_name(anchor.function)})"
        condition = _sure_part(plan, anchor) if isinstance(anchor.node, cst.If) else None
        if condition is not None:
            plan.edits.insert_after(anchor.line_node, f"if {condition}:", f"    {line}")
        else:
            plan.edits.insert_after(anchor.line_node, line)
    return True


def _reached_by_all(plan: Plan, statement: Statement, depth: int) -> list[Statement] | None:
    """The statements around this one, in its function or in those that call it, that all ranks reach with an engine.

    None where one of the ways to the statement has no such place.
    """
    if depth == 0:
        return None
    guard = _outermost_doubt(plan, statement)
    function = statement.function
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(function, ())]
    guarded_call = any(_rank_guard(plan, caller) is not None for caller in callers)
    anchor = guard if guard is not None else statement
    early = plan.site is not None and function is plan.site.function and anchor.order <= plan.site.order
    further = guarded_call or (guard is None and _is_saver(function)) or plan.engine_name(function) is None or early
    if not further:
        return [anchor]
    if not callers:
        return None if plan.engine_name(function) is None or early else [anchor]
    found: list[Statement] = []
    for caller in callers:
        inner = _reached_by_all(plan, caller, depth - 1)
        if inner is None:
            return None
        found.extend(inner)
    return found


def _is_saver(function: Function) -> bool:
    return bool(re.search(r"save|checkpoint|ckpt|snapshot|dump|store", function.name, re.IGNORECASE))


def _outermost_doubt(plan: Plan, statement: Statement) -> Statement | None:
    """The outermost enclosing ``if`` that may go another way on another rank."""
    doubt = None
    site = plan.site
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.For | cst.While):
            break
        if site is not None and outer.function is site.function and outer.order < site.anchor.order <= outer.last_order:
            break
        if isinstance(outer.node, cst.If) and not _is_uniform(plan, outer.node.test):
            doubt = outer
    while (
        doubt is not None
        and doubt.up is not None
        and isinstance(doubt.up.node, cst.If)
        and doubt.up.node.orelse is doubt.node
    ):
        doubt = doubt.up
    return doubt


def _is_uniform(plan: Plan, test: Node) -> bool:
    """Whether a test is made of counters, options and constants only, which all ranks share."""
    text = plan.code(test)
    if _RANKISH.search(text):
        return False
    for sub in descendants(test):
        if isinstance(sub, cst.Call) and dotted(sub.func) not in ("len", "int", "max", "min", "getattr", "hasattr"):
            return False
        if isinstance(sub, cst.Name) and not _is_attribute_name(plan, sub) and not _COUNTER.match(sub.value):
            return False
    return True


def _is_attribute_name(plan: Plan, node: cst.Name) -> bool:
    parent = plan.tree.parent.get(node)
    return isinstance(parent, cst.Attribute) and parent.attr is node


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
        elif _is_uniform(plan, test):
            parts.append(plan.code(test))

    split(node.test)
    return " and ".join(parts) or None


# -- the rest ------------------------------------------------------------------------------------------------------


def _exports(plan: Plan, found: _Found) -> None:
    for save in found.exports:
        if plan.zero_stage == _PARTITIONED:
            calls = [
                c
                for source, _ in _sources(plan, save.state, save.statement.function, 6)
                for c, _ in _state_calls(plan, source)
            ]
            for statement in {plan.tree.statement(c): None for c in calls} or {save.statement: None}:
                _gather(plan, statement)
            continue
        plan.kept("MG624", save.statement, "this export of the weights stays; it is whole at ZeRO 0, 1 and 2",
                  "at ZeRO 3 the parameters would have to be gathered first")  # fmt: skip


def _pretrained(plan: Plan) -> None:
    """``model.save_pretrained(…)`` exports the weights as well."""
    for call in plan.tree.calls:
        func = call.func
        if (
            isinstance(func, cst.Attribute)
            and func.attr.value in ("save_pretrained", "save_weights")
            and plan.is_ours(func.value)
        ):
            if plan.zero_stage == _PARTITIONED:
                plan.todo("MG628", call, "gather the parameters on all ranks around this (deepspeed.zero.GatheredParameters)",
                          "the module holds empty tensors at ZeRO 3")  # fmt: skip
            else:
                plan.kept("MG624", call, "this export of the weights stays; it is whole at ZeRO 0, 1 and 2",
                          "at ZeRO 3 the parameters would have to be gathered first")  # fmt: skip


def _gather(plan: Plan, statement: Statement) -> None:
    """Gather the parameters, on all ranks, around a statement that takes the state dict of the module."""
    anchors = _reached_by_all(plan, statement, 4)
    if anchors is None:
        plan.todo("MG628", statement, "gather the parameters on all ranks around this (deepspeed.zero.GatheredParameters)",
                  "state_dict() has shapes (0,) at ZeRO 3")  # fmt: skip
        return
    for anchor in anchors:
        engine = plan.engine_name(anchor.function)
        plan.edits.surround(anchor.line_node, f"deepspeed.zero.GatheredParameters(list({engine}.module.parameters()))")
    plan.need("deepspeed")
    plan.converted(
        "MG628",
        statement,
        "the parameters are gathered on all ranks around this",
        "state_dict() has shapes (0,) at ZeRO 3",
    )


def _late_weights(plan: Plan, found: _Found) -> None:
    """Weights that are loaded into the module after the engine took its master copy."""
    for call in found.model_loads:
        statement = plan.tree.statement(call)
        if call in plan.handled or plan.edits.is_removed(statement.node) or plan.is_before_engine(call):
            continue
        if _only_evaluates(plan, statement):
            plan.kept("MG625", statement, "weights are loaded for evaluation here; they do not reach the optimizer",
                      "at ZeRO 1-3 the next training step would undo them")  # fmt: skip
            continue
        plan.todo("MG625", statement, "weights loaded after deepspeed.initialize are undone by the next step: load them before",
                  "the engine's master copy wins at ZeRO 1-3")  # fmt: skip


def _only_evaluates(plan: Plan, statement: Statement) -> bool:
    """Whether nothing trains after a statement: no backward below it in its function, nor in a loop around it."""
    training = {plan.function_of(call) for call in find_backward(plan)}
    name = statement.function.name.lower()
    if any(word in name for word in ("eval", "valid", "test", "infer")) and statement.function not in training:
        return True
    if any(isinstance(outer.node, cst.For | cst.While) for outer in statement.enclosing()):
        return False
    for call in plan.tree.calls:
        inner = plan.tree.statement(call)
        if inner.function is statement.function and inner.order > statement.order:
            if plan.flow.callee(call) in training or call in find_backward(plan):
                return False
    return statement.function in training or any(
        plan.flow.callee(call) in training and plan.function_of(call) is statement.function for call in plan.tree.calls
    )


def _outside_helpers(plan: Plan) -> None:
    """Calls that hand the optimizer to a saving or loading function of another module."""
    for call in plan.tree.calls:
        text = dotted(call.func) or ""
        last = text.rpartition(".")[2]
        if plan.flow.callee(call) is not None or not re.search(
            r"save|load|resume|checkpoint|ckpt|restore", last, re.IGNORECASE
        ):
            continue
        if last in ("load_state_dict", "state_dict") or call in plan.handled:
            continue
        if "load" in last.lower() or "restore" in last.lower():
            wrapped_before = [
                arg for arg in call.args
                if isinstance(arg.value, cst.Name | cst.Attribute)
                and any(t[0] == "E" and t[1:] in plan.group for t in plan.tags(arg.value))
                and plan.is_before_engine(arg.value)
                and any(w.function is plan.function_of(call) and w.statement.order < plan.tree.statement(call).order for w in plan.wraps)
            ]  # fmt: skip
            if wrapped_before:
                plan.todo("MG507", call, f"{text} gets the plain model here; it was wrapped, with keys that begin with 'module.'",
                          "the engine is made further down")  # fmt: skip
        if any(plan.roles.is_optimizer(arg.value) for arg in call.args):
            plan.todo("MG626", call, f"{text} handles the optimizer state: it has to use engine.save_checkpoint/load_checkpoint",
                      "the optimizer object holds this rank's partition at ZeRO 1-3; saving is collective")  # fmt: skip


def _stray_state(plan: Plan) -> None:
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "state_dict" or call in plan.edits.expressions:
            continue
        if plan.roles.is_optimizer(func.value) and call not in plan.handled:
            plan.todo("MG627", call, "optimizer.state_dict() holds this rank's part only at ZeRO 1-3",
                      "use engine.save_checkpoint for state that has to come back")  # fmt: skip
