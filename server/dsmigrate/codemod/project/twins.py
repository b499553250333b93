"""Two forms of one function in a module that several scripts share: the old one, and a twin beside it for the engine.

The old definition stays as it is for the scripts that are not converted; the converted script, and what only it uses,
refer to the twin. Works on texts: the module before and after its conversion.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dsmigrate.codemod import audit
from dsmigrate.codemod.project.index import Index
from dsmigrate.codemod.project.outline import Import, bound, dotted
from dsmigrate.codemod.project.users import Name, own_uses

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_HARMLESS = frozenset(
    {"no_grad", "inference_mode", "enable_grad", "wraps", "dataclass", "contextmanager", "cache", "lru_cache"}
)
"""Decorators that a second function may have too; others may enter it somewhere under its name."""


class NoTwinError(Exception):
    """The two forms cannot stand side by side; the message says why."""


@dataclass(slots=True)
class Forms:
    """The files of a training before (``old``) and after (``new``) their conversion.

    ``shared`` are the definitions that others use in the old form, ``affected`` all that come in a new form, whether
    they changed or only refer to what did. ``entry`` is the script; its text has the new form as a whole.
    """

    old: Index
    new: Index
    entry: str
    shared: frozenset[Name]
    affected: frozenset[Name]
    names: dict[Name, str] = field(default_factory=dict)
    """The twin of each shared definition."""


def with_twins(forms: Forms, files: Sequence[str]) -> dict[str, str]:
    """The texts of the files that have two forms or refer to a twin. Raises NoTwinError."""
    for name in sorted(forms.shared):
        forms.names[name] = _twin_name(forms, name)
    found = {}
    for path in files:
        if path != forms.entry:
            _check(forms, path)
        text = _composed(forms, path)
        if text is not None:
            found[path] = text
    return found


def _twin_name(forms: Forms, name: Name) -> str:
    path, plain = name
    outline = forms.new.outline(path)
    node = _definition(_tree(forms.old, path), plain)
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (dotted(called) or "").rpartition(".")[2] not in _HARMLESS:
            raise NoTwinError(f"{plain} has a decorator that may register it")
    twin = f"{plain}DeepSpeed" if isinstance(node, ast.ClassDef) else f"{plain}_deepspeed"
    if twin in outline.definitions or twin in outline.assigned or twin in outline.imports:
        raise NoTwinError(f"{path} has a {twin} already")
    return twin


def _check(forms: Forms, path: str) -> None:
    """A module's own statements must be the same in both forms, and belong to neither."""
    before, after = _tree(forms.old, path), _tree(forms.new, path)
    uses = own_uses(forms.old, path) & forms.affected
    if uses:
        raise NoTwinError(f"{path} uses {min(uses)[1]} outside of functions")
    kept = [ast.dump(node) for node in after.body]
    for node in before.body:
        if not isinstance(node, Definition | ast.Import | ast.ImportFrom) and ast.dump(node) not in kept:
            raise NoTwinError(f"{path}:{node.lineno} changes outside of functions")


def _composed(forms: Forms, path: str) -> str | None:
    old_text, text = _text(forms.old, path), _text(forms.new, path)
    tree = _tree(forms.new, path)
    edits = _Edits(text)
    uses = _Uses(forms, path, edits)
    if path == forms.entry:
        uses.visit(tree)
    for name in sorted(name for file, name in forms.affected if file == path and path != forms.entry):
        node = _definition(tree, name)
        uses.visit(node)
        if (path, name) in forms.names:
            edits.rename_definition(node, name, forms.names[path, name])
            original = _segment(old_text, _definition(_tree(forms.old, path), name))
            edits.insert(_first_line(node), f"{original}{edits.newline * 3}")
    if edits.is_empty and not uses.imports:
        return None
    composed = edits.applied(uses.imports)
    missing = audit.undefined_names(ast.parse(composed)) - audit.undefined_names(_tree(forms.old, path))
    if missing:
        back = [
            _written(item) for name in sorted(missing) for item in forms.old.outline(path).imports.get(name, ())[:1]
        ]
        composed = edits.applied([*uses.imports, *back])
        if audit.undefined_names(ast.parse(composed)) - audit.undefined_names(_tree(forms.old, path)):
            raise NoTwinError(f"{path} would lack a name")
    return composed


def _text(index: Index, path: str) -> str:
    file = index.file(path)
    if file is None or file.text is None:
        raise NoTwinError(f"{path} cannot be read")
    return file.text.text


def _tree(index: Index, path: str) -> ast.Module:
    index.outline(path)
    file = index.file(path)
    if file is None or file.python is None:
        raise NoTwinError(f"{path} cannot be read")
    return file.python


def _definition(tree: ast.Module, name: str) -> Definition:
    found = [node for node in tree.body if isinstance(node, Definition) and node.name == name]
    if len(found) != 1:
        raise NoTwinError(f"{name} is defined {len(found)} times")
    return found[0]


def line_of(index: Index, name: Name) -> int:
    """The line on which a top-level function or class begins, 1-based. Raises NoTwinError."""
    return _definition(_tree(index, name[0]), name[1]).lineno


def _first_line(node: Definition) -> int:
    return min(node.lineno, *(decorator.lineno for decorator in node.decorator_list), node.lineno)


def _segment(text: str, node: Definition) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(lines[_first_line(node) - 1 : node.end_lineno]).rstrip("\r\n")


def _written(item: Import) -> str:
    if item.name is None:
        return (
            f"import {item.module}"
            if item.local in (item.module, item.module.partition(".")[0])
            else f"import {item.module} as {item.local}"
        )
    local = "" if item.local == item.name else f" as {item.local}"
    return f"from {'.' * item.level}{item.module} import {item.name}{local}"


class _Edits:
    """Replacements in one text, by the positions of ``ast``: 1-based lines, columns in bytes of UTF-8."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._inserted: dict[int, str] = {}
        self._added: dict[int, list[str]] = {}
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.found: list[tuple[int, int, int, str]] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.found or self._inserted or self._added)

    def replace(self, line: int, start: int, end: int, text: str) -> None:
        """Put ``text`` in the place of some columns of a line."""
        self.found.append((line, start, end, text))

    def insert(self, line: int, text: str) -> None:
        """Put ``text`` before a line."""
        self._inserted[line] = text

    def add_line(self, after: int, columns: int, text: str) -> None:
        """Put a line of its own after a line, as far to the right as a statement that begins in column ``columns``."""
        self._added.setdefault(after, []).append(" " * columns + text + self.newline)

    def rename_definition(self, node: Definition, name: str, twin: str) -> None:
        """Give a function or class another name."""
        line = self._lines[node.lineno - 1].encode()
        match = re.compile(rb"(?:def|class)\s+(" + name.encode() + rb")\b").search(line, node.col_offset)
        if match is None:
            raise NoTwinError(f"the name of {name} stands on a line of its own")
        self.replace(node.lineno, match.start(1), match.end(1), twin)

    def applied(self, imports: Sequence[str]) -> str:
        """The new text, with ``imports`` after those at the head of the file."""
        lines = list(self._lines)
        for line, start, end, text in sorted(set(self.found), reverse=True):
            raw = lines[line - 1].encode()
            lines[line - 1] = (raw[:start] + text.encode() + raw[end:]).decode()
        for line, text in self._inserted.items():
            lines[line - 1] = text + lines[line - 1]
        for line, more in self._added.items():
            lines[line - 1] += "".join(more)
        if imports:
            at = _end_of_imports(ast.parse("".join(self._lines)))
            added = "".join(f"{text}{self.newline}" for text in dict.fromkeys(imports))
            if at:
                lines[at - 1] += added
            else:  # the conversion took the only imports out, and left the blank line that stood before them
                lines[0] = added + ("" if not lines[0].strip() else lines[0])
        return "".join(lines)


def _end_of_imports(tree: ast.Module) -> int:
    """The last line of the imports at the head of a module, or of its docstring; 0 where there is neither."""
    last = 0
    for index, node in enumerate(tree.body):
        is_text = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or is_text:
            last = node.end_lineno or last
        elif isinstance(node, Definition):
            break
    return last


class _Uses(ast.NodeVisitor):
    """Makes the code below a node refer to twins; ``imports`` are the statements that its file needs more."""

    def __init__(self, forms: Forms, path: str, edits: _Edits) -> None:
        self._forms = forms
        self._path = path
        self._edits = edits
        self._hidden: list[frozenset[str]] = []
        self.imports: list[str] = []

    def visit_Import(self, node: ast.Import) -> None:
        """Modules keep their names."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """``from m import f`` becomes ``from m import f_deepspeed as f``."""
        module = self._forms.new.module(self._path, node.module or "", node.level)
        for alias in node.names:
            target = self._forms.new.exported(module, alias.name) if module is not None else None
            twin = self._forms.names.get(target) if target is not None else None
            if twin is None or target is None:
                continue
            local = alias.asname or alias.name
            if module == target[0]:
                assert alias.end_col_offset is not None
                self._edits.replace(alias.lineno, alias.col_offset, alias.end_col_offset, f"{twin} as {local}")
            else:  # a package hands it on, which knows the old form only
                assert node.end_lineno is not None
                way = self._way(target, Import(local, node.module or "", node.level, alias.name))
                self._edits.add_line(node.end_lineno, node.col_offset, f"from {way} import {twin} as {local}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Names that the function binds are its own."""
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """As any function."""
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """As any function."""
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        body = node.body if isinstance(node.body, list) else [node.body]
        for child in ast.iter_child_nodes(node):
            if child not in body:
                self.visit(child)
        names = bound(node)
        self._hidden.append((names.variables | names.imported | names.defined) - names.outer)
        for child in body:
            self.visit(child)
        self._hidden.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``module.f`` becomes ``module.f_deepspeed``."""
        text = dotted(node)
        target = self._forms.new.resolve(self._path, text) if text is not None else None
        twin = self._forms.names.get(target) if target is not None else None
        if text is None or target is None or twin is None:
            self.generic_visit(node)
            return
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = node.end_col_offset - len(node.attr.encode())
        if not self._is_module(text.rpartition(".")[0], target[0]):
            if node.lineno != node.end_lineno:
                raise NoTwinError(f"{text} stands on several lines")
            self._import(target, twin, self._forms.new.outline(self._path).imports[text.partition(".")[0]])
            start = node.col_offset
        self._edits.replace(node.end_lineno, start, node.end_col_offset, twin)

    def _is_module(self, text: str, path: str) -> bool:
        root, _, rest = text.partition(".")
        return any(
            self._forms.new.module(self._path, ".".join(filter(None, [item.module, item.name, rest])), item.level)
            == path
            for item in self._forms.new.outline(self._path).imports.get(root, ())
        )

    def visit_Name(self, node: ast.Name) -> None:
        """``f`` becomes ``f_deepspeed``, where no import gives it that name."""
        if not isinstance(node.ctx, ast.Load) or any(node.id in names for names in self._hidden):
            return
        outline = self._forms.new.outline(self._path)
        twin = self._forms.names.get((self._path, node.id))
        if twin is None:
            target = self._forms.new.resolve(self._path, node.id)
            twin = self._forms.names.get(target) if target is not None else None
            if twin is None or target is None:
                return
            items = outline.imports.get(node.id)
            if items and self._path == self._forms.entry:
                return  # its import says so
            self._import(target, twin, items or outline.stars)
        assert node.end_col_offset is not None
        self._edits.replace(node.lineno, node.col_offset, node.end_col_offset, twin)

    def _import(self, target: Name, twin: str, items: Sequence[Import]) -> None:
        is_star = any(item.local == "*" for item in items)
        direct = [item for item in items if self._forms.new.module(self._path, item.module, item.level) == target[0]]
        if is_star and direct and "__all__" not in self._forms.new.outline(target[0]).assigned:
            return  # it comes with the others
        item = next(iter(direct or items))
        way = f"{'.' * item.level}{item.module}" if direct else self._way(target, item)
        self.imports.append(f"from {way} import {twin}")

    def _way(self, target: Name, item: Import) -> str:
        """How to import the module that defines a name, which ``item`` gets through another one."""
        find = self._forms.new.module
        stem = target[0].removesuffix(".py").removesuffix("/__init__").split("/")
        below = (
            item.module
            if item.name is None or not find(self._path, f"{item.module}.{item.name}", item.level)
            else f"{item.module}.{item.name}"
        )
        ways = [(".".join(filter(None, [below, *stem[start:]])), item.level) for start in range(len(stem))]
        ways += [(".".join(stem[start:]), 0) for start in range(len(stem))]
        for name, level in ways:
            if find(self._path, name, level) == target[0]:
                return f"{'.' * level}{name}"
        raise NoTwinError(f"{target[1]} comes through another module")
