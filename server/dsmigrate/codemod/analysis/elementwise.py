"""Whether an optimizer's step treats every number by itself: what is not known to do so looks at whole parameters."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

from dsmigrate.codemod.analysis.classes import bases_of, looked_up
from dsmigrate.codemod.analysis.optimizer_words import (
    ACTS,
    ELEMENTWISE,
    LAYERWISE,
    LOOKS,
    MAKES,
    OF_TORCH,
    OWN,
    PLAIN,
    SAFE_MODULES,
)
from dsmigrate.codemod.analysis.values import Kind, Lib, Obj, Value, each

_FILE_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_SIZES = frozenset({"shape", "size"})
_STEP_FREE = frozenset(
    {
        "super",
        "isinstance",
        "range",
        "print",
        "zip",
        "enumerate",
        "dict",
        "list",
        "tuple",
        "float",
        "int",
        "abs",
        "max",
        "min",
        "sum",
        "len",
        "any",
        "all",
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """How an optimizer updates: ``whole`` says that it looks at whole parameters, None that this is not known."""

    whole: bool | None
    name: str
    what: str = ""
    """The code that looks, or that is not read."""


def rule_of(thing: Obj) -> Rule:
    """How an optimizer updates, by its class."""
    cls = thing.cls
    names = [name.rpartition(".")[2] for name in bases_of(thing)]
    if "ZeroRedundancyOptimizer" in names:  # a wrapper of the class that it is given
        given = thing.data.get("arguments", {"args": (), "named": {}})
        inner = given["named"].get("optimizer_class", (*given["args"], None, None)[1])
        names = [inner.name.rpartition(".")[2]] if isinstance(inner, Lib) else names
    own = str(cls.data.get("name", "")) if cls is not None else ""
    name = own or (names[0] if names else "")
    if LAYERWISE.search(own):
        return Rule(whole=True, name=name)
    if cls is not None:
        step = looked_up(cls, "step")
        if step is not None and isinstance(step[0], Obj) and step[0].kind is Kind.FUNCTION:
            return _read(cls, step[0], name)
    last = next((one for one in names if one != "Optimizer"), "")
    if LAYERWISE.search(last) and last not in ELEMENTWISE:
        return Rule(whole=True, name=name)
    return Rule(False if last in ELEMENTWISE else None, name)


def _read(cls: Obj, step: Obj, name: str) -> Rule:
    reader = _Reader(cls)
    reader.function(step)
    sure = next((text for text, known in reader.found if known), None)
    if sure is not None:
        return Rule(whole=True, name=name, what=sure)
    return Rule(None, name, reader.found[0][0]) if reader.found else Rule(whole=False, name=name)


@dataclass(eq=False)
class _Reader:
    """Reads a step and every function of the script that it calls."""

    cls: Obj
    found: list[tuple[str, bool]] = field(default_factory=list)
    seen: set[ast.AST] = field(default_factory=set)

    def function(self, function: Obj) -> None:
        node = function.node
        if node in self.seen or not isinstance(node, _FILE_FUNCTIONS):
            return
        self.seen.add(node)
        parameters, numbers = _loops(node)
        frame = function.data.get("frame")
        for statement in node.body:
            for one in _inside(statement):
                self._look(one, parameters, numbers, frame)

    def _add(self, node: ast.AST, *, sure: bool = True) -> None:
        self.found.append((ast.unparse(node)[:60], sure))

    def _look(self, node: ast.AST, parameters: set[str], numbers: set[str], frame: object) -> None:
        match node:
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                self._add(node)
            case ast.Call(func=ast.Name(id="len" | "id" | "hash"), args=[ast.Name(id=name)]) if name in parameters:
                self._add(node)
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[ast.Name(id=name), ast.Constant(value=value), *_]
            ) if name in parameters and value not in OWN:
                self._add(node)
            case ast.Call():
                self._called(node, frame)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                name in parameters and attr.rstrip("_") not in ACTS | OWN | MAKES
            ):
                self._add(node)
            case ast.Attribute(attr=attr) if attr.rstrip("_") in LOOKS and not _library(node, frame):
                self._add(node)
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()], comparators=[other]) if (
                name in parameters and not isinstance(other, ast.Constant)
            ):
                self._add(node)
            case ast.Compare(left=ast.Name(id=name), ops=[ast.In() | ast.NotIn()], comparators=[other]) if (
                name in parameters and not _is_state(other)
            ):
                self._add(node)
            case ast.Subscript(value=base, slice=key) if any(
                isinstance(one, ast.Name) and one.id in parameters for one in ast.walk(key)
            ) and not _is_state(base):
                self._add(node)
            case (
                ast.Subscript(slice=ast.Slice() | ast.Constant(value=int()), value=ast.Name())
                | ast.Subscript(
                    slice=ast.Slice() | ast.Constant(value=int()), value=ast.Attribute(attr="grad" | "data")
                )
            ):
                self._add(node, sure=False)
            case ast.Name(id=name) if name in numbers:
                self._add(node)

    def _called(self, call: ast.Call, frame: object) -> None:
        func = call.func
        library = _library(func, frame)
        if library is not None:
            self._of_library(call, library)
            return
        if isinstance(func, ast.Name):
            held = _named(func.id, frame)
            if held:
                for one in held:
                    if isinstance(one, Obj) and one.kind is Kind.FUNCTION:
                        self.function(one)
                    elif not (isinstance(one, Obj) and one.kind is Kind.CLASS):
                        self._add(func, sure=False)
            elif not hasattr(builtins, func.id) and func.id not in _STEP_FREE:
                if func.id != "closure":
                    self._add(func, sure=False)
        elif isinstance(func, ast.Attribute):
            self._method(call, func)

    def _of_library(self, call: ast.Call, name: str) -> None:
        root, last = name.partition(".")[0], name.rpartition(".")[2]
        plain = last.rstrip("_")
        if root in SAFE_MODULES or last in OF_TORCH | MAKES or plain in ACTS:
            return
        if last in {"max", "min"}:
            if len(call.args) != 2 or isinstance(call.args[1], ast.Constant):
                self._add(call)
        elif last.startswith("_foreach_"):
            if last.rpartition("_")[2] in {"norm", "max"}:
                self._add(call)
        elif not (name.startswith("torch.optim.") and last.islower() and last not in {"adafactor", "muon"}):
            self._add(call, sure=plain in LOOKS or "distributed" in name)

    def _method(self, call: ast.Call, func: ast.Attribute) -> None:
        name = func.attr
        if isinstance(func.value, ast.Call) and isinstance(func.value.func, ast.Name) and func.value.func.id == "super":
            return
        if isinstance(func.value, ast.Name) and func.value.id == "self":
            found = looked_up(self.cls, name)
            if found is not None and isinstance(found[0], Obj) and found[0].kind is Kind.FUNCTION:
                self.function(found[0])
            elif name not in {"_init_group", "_cuda_graph_capture_health_check"} | PLAIN:
                self._add(func, sure=False)
        elif name in {"max", "min"}:
            if len(call.args) != 1 or isinstance(call.args[0], ast.Constant):
                self._add(call)
        elif name.rstrip("_") not in ACTS | LOOKS and name not in PLAIN | MAKES:
            self._add(func, sure=False)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that say how numbers are updated: not errors, sizes of new buffers, tests for sparse gradients."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.FunctionDef):
        return
    if isinstance(node, ast.If) and isinstance(node.test, ast.Attribute) and node.test.attr == "is_sparse":
        for inner in node.orelse:
            yield from _inside(inner)
        return
    yield node
    makes = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAKES
    for child in ast.iter_child_nodes(node):
        if makes and child is not getattr(node, "func", None) and _is_size(child):
            continue
        yield from _inside(child)


def _is_size(node: ast.AST) -> bool:
    inner = node.func if isinstance(node, ast.Call) else node
    return isinstance(inner, ast.Attribute) and inner.attr in _SIZES


def _loops(node: ast.AST) -> tuple[set[str], set[str]]:
    """The names of the parameters that a step goes over, and of what counts them or goes side by side."""
    parameters: set[str] = set()
    others: set[str] = set()
    for one in ast.walk(node):
        if not isinstance(one, ast.For | ast.comprehension):
            continue
        if _is_params(one.iter) and isinstance(one.target, ast.Name):
            parameters.add(one.target.id)
        elif (
            isinstance(one.iter, ast.Call) and isinstance(one.iter.func, ast.Name) and isinstance(one.target, ast.Tuple)
        ):
            names = [target.id if isinstance(target, ast.Name) else "" for target in one.target.elts]
            if one.iter.func.id == "enumerate" and _is_params(one.iter.args[0]) and len(names) == 2:
                parameters.add(names[1])
                others.add(names[0])
            elif one.iter.func.id == "zip" and any(map(_is_params, one.iter.args)):
                for name, over in zip(names, one.iter.args, strict=False):
                    (
                        parameters
                        if _is_params(over)
                        else others
                        if isinstance(over, ast.Attribute | ast.Subscript)
                        else set()
                    ).add(name)
    return parameters, others


def _is_params(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "params"


def _is_state(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "state") or (
        isinstance(node, ast.Name) and node.id == "state"
    )


def _named(name: str, frame: object) -> list[Value]:
    while frame is not None:
        own = frame.obj.own  # type: ignore[attr-defined]
        if name in own:
            return list(each(own[name]))
        frame = frame.outer  # type: ignore[attr-defined]
    return []


def _library(node: ast.AST, frame: object) -> str | None:
    """The qualified name of something of a library."""
    if isinstance(node, ast.Name):
        found = _named(node.id, frame)
        return found[0].name if len(found) == 1 and isinstance(found[0], Lib) else None
    if isinstance(node, ast.Attribute):
        base = _library(node.value, frame)
        return f"{base}.{node.attr}" if base is not None else None
    return None
