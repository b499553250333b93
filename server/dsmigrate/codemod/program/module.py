"""One Python file of a project as a syntax tree, and the scopes in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

from dsmigrate.files import syntax
from dsmigrate.files.text import SourceText, decode

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(eq=False)
class Module:
    """A file: ``path`` is relative to the project's root, with ``/``; ``name`` its dotted name as it was imported."""

    path: str
    name: str
    source: SourceText
    tree: ast.Module
    statements: dict[ast.AST, Step] = field(default_factory=dict)

    @property
    def package(self) -> str:
        """The dotted name that relative imports start from."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return self.source.text.splitlines()

    @cached_property
    def _whole_lines(self) -> list[bytes]:
        """The lines as Python counts them, with their ends, encoded as its columns count."""
        return [line.encode() for line in _LINE.findall(self.source.text)]

    def step(self, node: ast.AST) -> Step:
        """Where the statement that a node is part of stands; raises KeyError for a node of another file."""
        if not self.statements:
            self.statements.update(_placed(self.tree))
        return self.statements[node]

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node as it is written."""
        if node.end_lineno is None or node.end_col_offset is None:
            return ast.unparse(node)
        lines = self._whole_lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"".join(lines).decode()


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A statement in its list of statements: ``body`` is the list, ``index`` its number there, ``up`` what holds it."""

    node: ast.stmt
    body: list[ast.stmt]
    index: int
    up: Step | None
    function: FunctionNode | None

    def around(self) -> Iterator[Step]:
        """The step and what holds it, from the inside out."""
        step: Step | None = self
        while step is not None:
            yield step
            step = step.up


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of a file, as text and as a tree."""

    data: bytes
    source: SourceText
    tree: ast.Module


def parsed(data: bytes) -> Parsed:
    """Parse a file; raises SourceError where it is no Python that can be read."""
    source = decode(data)
    return Parsed(data, source, syntax.read(source.text))


def _placed(tree: ast.Module) -> Iterator[tuple[ast.AST, Step]]:
    """Every node below a statement, with the innermost statement that it is part of."""
    pending: list[tuple[list[ast.stmt], Step | None, FunctionNode | None]] = [(tree.body, None, None)]
    while pending:
        body, up, function = pending.pop()
        for index, node in enumerate(body):
            step = Step(node, body, index, up, function)
            yield node, step
            inner = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
            walk: list[ast.AST] = [node]
            while walk:
                for _, value in ast.iter_fields(walk.pop()):
                    if isinstance(value, ast.AST):
                        yield value, step
                        walk.append(value)
                    elif isinstance(value, list) and value:
                        if isinstance(value[0], ast.stmt):
                            pending.append((value, step, inner))
                        else:
                            for one in value:
                                if isinstance(one, ast.AST):
                                    yield one, step
                                    walk.append(one)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a function binds for itself, and those it takes from the module or from around it."""

    local: frozenset[str]
    outer: frozenset[str]
    """Declared ``global``."""
    around: frozenset[str]
    """Declared ``nonlocal``."""
    is_generator: bool


_KNOWN: WeakKeyDictionary[ast.AST, Names] = WeakKeyDictionary()


def names_of(node: ast.AST) -> Names:
    """The names of a function, a lambda or a comprehension; found once for each."""
    found = _KNOWN.get(node)
    if found is None:
        found = _KNOWN[node] = _names(node)
    return found


def _names(node: ast.AST) -> Names:
    bound: set[str] = set()
    outer: set[str] = set()
    around: set[str] = set()
    yields = False
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        taken = node.args
        every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
        bound.update(arg.arg for arg in every if arg is not None)
        pending: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        pending = [generator.target for generator in node.generators]
    else:
        pending = []
    while pending:
        one = pending.pop()
        match one:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(one.name)
                pending += one.decorator_list
                continue
            case ast.Lambda():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                pending += [sub for sub in ast.walk(one) if isinstance(sub, ast.NamedExpr)]
                continue
            case ast.Global():
                outer.update(one.names)
            case ast.Nonlocal():
                around.update(one.names)
            case ast.Import() | ast.ImportFrom():
                bound.update((alias.asname or alias.name.split(".")[0]) for alias in one.names)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.Yield() | ast.YieldFrom():
                yields = True
        pending.extend(ast.iter_child_nodes(one))
    return Names(frozenset(bound - outer - around), frozenset(outer), frozenset(around), yields)
