"""The arguments that a script does not start without, as its own parser asks for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from dsmigrate.codemod.needed_paths import used_as_paths
from dsmigrate.codemod.plan import Plan
from dsmigrate.files import syntax
from dsmigrate.files.text import SourceError

_PARSES = frozenset({"parse_args", "parse_known_args"})
_LAUNCHERS = frozenset({"local_rank", "node_rank"})
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Needed:
    """One argument: its option, "" for one without, and what stands for its value until the person fills it in."""

    option: str
    placeholder: str

    @property
    def text(self) -> str:
        """The argument on a command line."""
        return f"{self.option} {self.placeholder}".lstrip()


def needed_arguments(plan: Plan) -> tuple[Needed, ...]:
    """The arguments without which the script's parser stops, those without an option first; () where none is sure.

    Looked for in the statements of the script, in those of the modules that it imports, and in the definitions that they
    name; what stands under a condition is not sure, and what a subcommand asks for neither.
    """
    entry = plan.tree.parts[0].python
    found: dict[Needed, None] = {}
    paths = used_as_paths(entry)
    parses = False
    for block in _run(entry, _modules(plan, entry)):
        for call in _calls(block):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if name in ("add_subparsers", "add_parser"):
                return ()
            parses = parses or (name in _PARSES and not (call.args and _is_written(call.args[0])))
        for call in _certain(block):
            needed = _needed(call, paths)
            if needed is not None:
                found[needed] = None
    return tuple(sorted(found, key=lambda needed: bool(needed.option))) if parses else ()


@dataclass(slots=True)
class _Module:
    """The definitions of a file, what its imports call by another name, and the names that are modules."""

    tree: ast.Module
    definitions: dict[str, _Definition] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.definitions = {node.name: node for node in self.tree.body if isinstance(node, _Definition)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    self.aliases[alias.asname or alias.name.partition(".")[0]] = alias.name


def _modules(plan: Plan, entry: ast.Module) -> list[_Module]:
    """The script, then the modules it imports that speak of arguments."""
    found = [_Module(entry)]
    own = ast.dump(entry)
    for text in plan.facts.get("texts", ()):
        if "add_argument(" in text:
            try:
                tree = syntax.read(text)
            except SourceError:
                continue
            if ast.dump(tree) != own:
                found.append(_Module(tree))
    return found


def _run(entry: ast.Module, modules: Sequence[_Module]) -> Iterator[list[ast.stmt]]:
    """The blocks that run when the script starts, as far as names tell."""
    methods = {"__init__"}
    methods |= {c.func.attr for m in modules for c in _calls(m.tree.body) if isinstance(c.func, ast.Attribute)}
    queue = [(module, _own_statements(module.tree, is_entry=module.tree is entry)) for module in modules]
    seen: set[_Definition] = set()
    while queue:
        module, block = queue.pop(0)
        yield block
        for name in _names(module, block):
            for other in [module] if name in module.definitions else modules:
                node = other.definitions.get(name)
                if node is not None and node not in seen and _is_only(name, module, modules):
                    seen.add(node)
                    queue.append((other, _body(node, methods)))


def _is_only(name: str, module: _Module, modules: Sequence[_Module]) -> bool:
    return name in module.definitions or sum(name in other.definitions for other in modules) == 1


def _own_statements(tree: ast.Module, *, is_entry: bool) -> list[ast.stmt]:
    body = [node for node in tree.body if not isinstance(node, _Definition)]
    return body if is_entry else [node for node in body if not _is_main_guard(node)]


def _body(node: _Definition, methods: set[str]) -> list[ast.stmt]:
    """What a call of a definition runs: of a class its methods that something calls, and its bases."""
    if not isinstance(node, ast.ClassDef):
        return node.body
    found = [item for item in node.body if not isinstance(item, _Definition) or item.name in methods]
    return [*found, *(ast.Expr(ast.Call(base, [], [])) for base in node.bases)]


def _names(module: _Module, block: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that a block calls or hands to a call, as they are where they are defined."""
    for call in _calls(block):
        for node in (call.func, *call.args):
            if isinstance(node, ast.Name):
                yield module.aliases.get(node.id, node.id)
            elif (
                isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in module.aliases
            ):
                yield node.attr  # of a module


def _calls(block: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    yield from (node for statement in block for node in ast.walk(statement) if isinstance(node, ast.Call))


def _certain(block: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """The ``add_argument`` calls of a block that nothing but the script's own start is a condition of."""
    for node in block:
        if isinstance(node, ast.Expr | ast.Assign):
            call = node.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                yield call
        elif isinstance(node, ast.With | ast.Try | ast.FunctionDef) or (
            isinstance(node, ast.If) and _is_main_guard(node)
        ):
            yield from _certain(node.body)  # a function here is a method of a class that is used


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and ast.unparse(node.test.left) == "__name__"


def _is_written(node: ast.expr) -> bool:
    """Whether a parser is handed arguments that the script wrote out itself."""
    return isinstance(node, ast.List | ast.Tuple | ast.Constant) and not (
        isinstance(node, ast.Constant) and node.value is None
    )


def _needed(call: ast.Call, paths: Collection[str]) -> Needed | None:
    """What one ``add_argument`` call asks for, if it can be read and nothing stands in for it.

    ``paths`` are the options that the script cannot start with as None.
    """
    keywords = {word.arg: _literal(word.value) for word in call.keywords}
    names = [_literal(arg) for arg in call.args]
    if None in keywords or not names or not all(isinstance(name, str) for name in names):
        return None
    long = next((str(name) for name in names if str(name).startswith("--")), str(names[0]))
    dest = str(keywords.get("dest") or long.lstrip("-"))
    if dest.replace("-", "_") in _LAUNCHERS:
        return None
    if long.startswith("-"):
        is_path = dest.replace("-", "_") in paths and keywords.get("default") is None and "action" not in keywords
        if keywords.get("required") is not True and not is_path:
            return None
    elif keywords.get("nargs") in ("?", "*", "...", 0, _UNKNOWN) or keywords.get("action") is not None:
        return None
    said = keywords.get("metavar")
    placeholder = re.sub(r"\W+", "_", said if isinstance(said, str) and said else dest).strip("_").upper()
    return Needed(long if long.startswith("-") else "", placeholder or "VALUE")


_UNKNOWN = object()


def _literal(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else _UNKNOWN
