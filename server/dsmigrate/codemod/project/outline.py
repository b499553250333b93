"""What one module imports, defines and refers to, by the standard library's parser: a tenth of what LibCST costs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dsmigrate.codemod.project import writing

# What a definition has to speak of to take part in a training: the loop, the wrap, its objects, its options, its loader.
_TRAINS = re.compile(
    r"\.backward\(|DistributedDataParallel|\bDDP\b|DataParallel|init_process_group|init_distributed|GradScaler|autocast"
    r"|zero_grad|no_sync|clip_grad|unscale_|optim|scheduler|add_argument|mp\.spawn|start_processes|\bDataLoader\("
    r"|comm_hook|GradBucket|bucket\.(?:buffer|get_tensor)\(|consolidate_state_dict"
    r"|save_on_master|param_groups|no_grad|inference_mode|\.eval\(\)|\.train\(\)|torch\.save|\.grad\b|params_and_buffers_to_ignore|sys\.argv|\.module\b"
)
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""The fields of statements that hold statements, in their order."""
MAY_IMPORT = re.compile(r"(?:^|\r)[ \t]*(?:from|import)[ \t]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: ``local = module`` or ``local = module.name``; ``level`` counts leading dots."""

    local: str
    module: str
    level: int
    name: str | None


@dataclass
class Definition:
    """A top-level function or class, all those of one name together; what it does is found when it is asked for."""

    name: str
    nodes: list[writing.Definition]
    texts: list[str]
    buffers: frozenset[str] | None
    """The buffers that its file registers; None where the file writes nothing."""

    @cached_property
    def refers_to(self) -> frozenset[str]:
        """The dotted names that it reads."""
        return frozenset().union(*map(_references, self.nodes))

    @cached_property
    def trains(self) -> bool:
        """Whether it speaks of training."""
        return any(map(speaks_of_training, self.texts))

    @cached_property
    def writes(self) -> bool:
        """Whether it changes weights, buffers or what is trained."""
        names = self.buffers
        return names is not None and any(writing.writes(node, names) for node in self.nodes)

    @property
    def bases(self) -> frozenset[str]:
        """The dotted names of its base classes."""
        every = (base for node in self.nodes for base in getattr(node, "bases", ()))
        return frozenset(name for base in every if (name := dotted(base)) is not None)


@dataclass
class Outline:
    """One module; ``own`` are its statements outside of definitions, ``stars`` its ``import *`` sources."""

    imports: dict[str, list[Import]] = field(default_factory=dict)
    stars: list[Import] = field(default_factory=list)
    definitions: dict[str, Definition] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    own: list[ast.stmt] = field(default_factory=list)
    trains: bool = False
    search_paths: tuple[str, ...] = ()

    @cached_property
    def refers_to(self) -> frozenset[str]:
        """The dotted names that its own statements read, the decorators and bases of its definitions among them."""
        heads = (head for found in self.definitions.values() for node in found.nodes for head in _heads(node))
        return frozenset().union(heads, *map(_references, self.own))

    def every_import(self) -> list[Import]:
        """All imports of the module, plain ones and star imports."""
        return [*(item for items in self.imports.values() for item in items), *self.stars]


def speaks_of_training(text: str) -> bool:
    """Whether a definition, or a whole file, takes part in a training by what it says."""
    return bool(_TRAINS.search(text))


def outline(tree: ast.Module, text: str) -> Outline:
    """Outline a parsed module; ``text`` is its source."""
    lines = text.splitlines()
    buffers = writing.buffers(text) if writing.may_write(text) else None
    found = Outline()
    for node in tree.body:
        segment = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            definition = found.definitions.setdefault(node.name, Definition(node.name, [], [], buffers))
            definition.nodes.append(node)
            definition.texts.append(segment)
        else:
            found.own.append(node)
            found.trains = found.trains or speaks_of_training(segment)
            found.assigned.update(
                sub.id for sub in ast.walk(node) if isinstance(sub, ast.Name) and isinstance(sub.ctx, ast.Store)
            )
    for statement in _statements(tree):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            _import(found, statement)
    found.search_paths = tuple(_search_paths(tree)) if "sys.path" in text or "path.append" in text else ()
    return found


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """All statements of a module, at any depth: a seventh of what a walk over all nodes costs."""
    found: list[ast.AST] = [tree]
    for node in found:  # it grows: outer statements come before inner ones
        for name in _BLOCKS:
            found.extend(getattr(node, name, ()))
        if isinstance(node, ast.stmt):
            yield node


def _import(found: Outline, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is not None:
                found.imports.setdefault(alias.asname, []).append(Import(alias.asname, alias.name, 0, None))
            else:
                root = alias.name.partition(".")[0]
                found.imports.setdefault(root, []).append(Import(root, root, 0, None))
                if root != alias.name:  # `import a.b` reads a.b too
                    found.imports.setdefault(alias.name, []).append(Import(alias.name, alias.name, 0, None))
        return
    for alias in node.names:
        if alias.name == "*":
            found.stars.append(Import("*", node.module or "", node.level, None))
        else:
            local = alias.asname or alias.name
            found.imports.setdefault(local, []).append(Import(local, node.module or "", node.level, alias.name))


IMPORTED_THERE = ":"
"""Stands before a name that a function imports by itself: a definition of the module with that name is not meant."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names mean inside a function: its own variables, and what it imports by itself."""

    own: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()


def _references(node: ast.AST, scope: _Scope = _Scope()) -> set[str]:
    """Names and dotted names that are read below a node: ``a.b.c`` also as ``a.b`` and ``a``; a function's own are not."""
    found: set[str] = set()
    stack: list[ast.AST] = [node]
    while stack:
        sub = stack.pop()
        if isinstance(sub, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = sub.body if isinstance(sub.body, list) else [sub.body]
            within = _inside(sub, scope)
            for statement in inner:
                found |= _references(statement, within)
            stack.extend(child for child in ast.iter_child_nodes(sub) if child not in inner)
            continue
        text = sub.id if isinstance(sub, ast.Name) else dotted(sub) if isinstance(sub, ast.Attribute) else None
        if text is not None:
            root = text.partition(".")[0]
            if root in scope.imported:
                found.add(IMPORTED_THERE + text)
            elif root not in scope.own:
                found.add(text)
        stack.extend(ast.iter_child_nodes(sub))
    return found


@dataclass(frozen=True, slots=True)
class Bound:
    """The names that a function gives a meaning: its arguments and variables, its imports, and what it defines inside."""

    variables: frozenset[str]
    imported: frozenset[str]
    defined: frozenset[str]
    outer: frozenset[str]
    """Names that it declares ``global`` or ``nonlocal``."""


def bound(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Bound:
    """What a function binds, without what functions inside of it do."""
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    variables = {arg.arg for arg in every}
    outer: set[str] = set()
    imported: set[str] = set()
    defined: set[str] = set()
    stack: list[ast.AST] = [] if isinstance(function, ast.Lambda) else [*function.body]
    while stack:
        sub = stack.pop()
        if isinstance(sub, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(sub.name)
            continue
        if isinstance(sub, ast.Lambda):
            continue
        if isinstance(sub, ast.Name) and isinstance(sub.ctx, ast.Store):
            variables.add(sub.id)
        elif isinstance(sub, ast.Global | ast.Nonlocal):
            outer.update(sub.names)
        elif isinstance(sub, ast.Import | ast.ImportFrom):
            imported.update((alias.asname or alias.name).partition(".")[0] for alias in sub.names)
        stack.extend(ast.iter_child_nodes(sub))
    return Bound(frozenset(variables), frozenset(imported), frozenset(defined), frozenset(outer))


def _inside(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: _Scope) -> _Scope:
    names = bound(function)
    own = (scope.own | names.variables) - names.outer - names.imported
    return _Scope(own, (scope.imported - names.variables) | names.imported)


def own_references(tree: ast.Module) -> set[str]:
    """Names and dotted names that a module's statements read, outside of its top-level functions and classes."""
    return {
        name
        for node in tree.body
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for name in _references(node)
    }


def _heads(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    parts: list[ast.AST] = list(node.decorator_list)
    if isinstance(node, ast.ClassDef):
        parts += node.bases
    return {name for part in parts for name in _references(part)}


def dotted(node: ast.expr) -> str | None:
    """``a.b.c`` as text; None for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(names)])


def _search_paths(tree: ast.Module) -> list[str]:
    """Folders that ``sys.path.append`` and ``insert`` add, relative to the file's own folder, as far as they can be read."""
    found: list[str] = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "insert", "extend")
            and dotted(node.func) in ("sys.path.append", "sys.path.insert", "sys.path.extend", "path.append")
            and node.args
        ):
            folder = _folder(node.args[-1])
            if folder is not None:
                found.append(folder)
    return found


def _folder(node: ast.expr) -> str | None:
    """``os.path.join(os.path.dirname(__file__), "..")`` and the like as a path relative to the file's folder."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name) and node.id == "__file__":
        return "./__file__"
    if isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last in ("abspath", "realpath", "str", "normpath", "Path", "resolve", "absolute"):
            inner = node.args[0] if node.args else getattr(node.func, "value", None)
            return _folder(inner) if inner is not None else None
        if last == "getcwd":
            return "."
        if last == "dirname" and node.args:
            inner_text = _folder(node.args[0])
            return None if inner_text is None else f"{inner_text}/.."
        if last == "join" and node.args:
            parts = [_folder(arg) for arg in node.args]
            return None if any(part is None for part in parts) else "/".join(str(part) for part in parts)
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        inner_text = _folder(node.value)
        return None if inner_text is None else f"{inner_text}/.."
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left, right = _folder(node.left), _folder(node.right)
        return None if left is None or right is None else f"{left}/{right}"
    return None
