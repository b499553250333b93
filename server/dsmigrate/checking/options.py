"""What a script takes where its launch line leaves an argument out: defaults of argparse and of dataclasses."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dsmigrate.files.reading import read
from dsmigrate.files.syntax import dotted, last_name
from dsmigrate.files.syntax import read as read_syntax
from dsmigrate.files.text import SourceError
from dsmigrate.rules import Arguments, Default

_LARGEST = 1 << 18
_PARSERS = frozenset({"HfArgumentParser", "TrlParser"})
_PARSES = frozenset({"parse_args_into_dataclasses", "parse_args_and_config"})
"""Methods that read the command line into dataclasses."""
TRAINER = frozenset({"TrainingArguments", "Seq2SeqTrainingArguments"})
"""Dataclasses whose fields have the defaults of Transformers."""
_ADDS = "add_argument"
_SWITCHES = {"store_true": "false", "store_false": "true"}
_DEEPEST = 8


def with_defaults(given: Arguments, script: Path, root: Path) -> Arguments:
    """Return arguments with the defaults of the script that gets them; ``root`` is the folder of its project."""
    found = of_script(script, root)
    return replace(given, defaults=found.defaults, whole=found.whole and not given.more)


@functools.cache
def of_script(script: Path, root: Path) -> Arguments:
    """Return the defaults of a script; ``whole`` where what it does not say has that of Transformers."""
    module = _Module.of(script, root)
    if module is None:
        return Arguments("", {})
    defaults = {name: one for name, one in _added(module) if name not in module.stored}
    classes = list(_parsed(module))
    of_trainer = False
    for name in classes:
        fields = _Fields(root)
        fields.take(module, name)
        defaults |= fields.defaults
        of_trainer = of_trainer or fields.of_trainer
    for name in module.stored & defaults.keys():
        defaults[name] = replace(defaults[name], text=None)
    if of_trainer:
        defaults |= {name: Default(None, module.place(1)) for name in module.stored - defaults.keys()}
    return Arguments("", {}, defaults=defaults, whole=of_trainer)


def forget() -> None:
    """Look at scripts again: some of them have changed."""
    of_script.cache_clear()


class _Module:
    """A script as a tree: its classes, what it imports, and the attributes that it sets."""

    def __init__(self, file: Path, tree: ast.Module, root: Path) -> None:
        self.file = file
        self.name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        self.nodes = list(ast.walk(tree))
        self.classes = {node.name: node for node in self.nodes if isinstance(node, ast.ClassDef)}
        self.stored = {
            node.attr for node in self.nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }

    @classmethod
    def of(cls, file: Path, root: Path) -> _Module | None:
        """Return a script, None for a file that is not there or no Python."""
        try:
            return cls(file, read_syntax(read(file, _LARGEST).decode("utf-8", "replace")), root)
        except (SourceError, RecursionError):
            return None

    def place(self, line: int) -> str:
        """Return the place of a line as messages show it."""
        return f"{self.name}:{line}"

    def source_of(self, name: str, root: Path) -> tuple[Path, str] | None:
        """Return the file of the project that a name is imported from, and what it is called there."""
        for node in self.nodes:
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                if (alias.asname or alias.name) != name or not isinstance(node, ast.ImportFrom):
                    continue
                parts = (node.module or "").split(".") if node.module else []
                above = [self.file.parents[node.level - 1]] if 0 < node.level <= len(self.file.parents) else []
                for base in above or (self.file.parent, root, root / "src"):
                    for file in (base.joinpath(*parts).with_suffix(".py"), base.joinpath(*parts, "__init__.py")):
                        if parts and file.is_file() and file.is_relative_to(root):
                            return file, alias.name
        return None


class _Fields:
    """The fields of a dataclass and of those it is made from, the nearest first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.defaults: dict[str, Default] = {}
        self.of_trainer = False

    def take(self, module: _Module, name: str, depth: int = 0) -> None:
        """Take the fields of a class by its name in a module: its own, or one that is imported."""
        node = module.classes.get(name)
        source = module.source_of(name, self.root) if node is None else None
        other = _Module.of(source[0], self.root) if source is not None else None
        if node is not None and depth < _DEEPEST:
            self._own(module, node)
            for base in map(dotted, node.bases):
                if base != name:
                    self.take(module, base, depth + 1)
                else:  # a class of that name stands for the one that it is made from
                    self.of_trainer = self.of_trainer or name in TRAINER
        elif source is not None and other is not None and depth < _DEEPEST:
            self.take(other, source[1], depth + 1)
        elif name.rpartition(".")[2] in TRAINER:
            self.of_trainer = True

    def _own(self, module: _Module, node: ast.ClassDef) -> None:
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                text = None if name in module.stored else _default(statement.value)
                self.defaults.setdefault(name, Default(text, module.place(statement.lineno)))


def _parsed(module: _Module) -> Iterator[str]:
    """Yield the names of the dataclasses that the command line of a script is read into."""
    calls = [node for node in module.nodes if isinstance(node, ast.Call)]
    if not any(isinstance(call.func, ast.Attribute) and call.func.attr in _PARSES for call in calls):
        return
    for call in calls:
        if last_name(call.func) not in _PARSERS:
            continue
        given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "dataclass_types")]
        for one in given:
            yield from (dotted(inner) for inner in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one]))


def _added(module: _Module) -> Iterator[tuple[str, Default]]:
    """Yield the options of argparse with their defaults; of two with one name nothing is known."""
    seen: dict[str, Default] = {}
    for node in module.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _ADDS):
            continue
        words = {word.arg: word.value for word in node.keywords if word.arg}
        flags = [str(one.value) for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        named = next((flag for flag in flags if flag.startswith("--")), "")
        dest = words.get("dest")
        name = str(dest.value) if isinstance(dest, ast.Constant) else named.lstrip("-").replace("-", "_")
        if not name:
            continue
        action = words.get("action")
        switch = _SWITCHES.get(str(action.value)) if isinstance(action, ast.Constant) else None
        text = _default(words["default"]) if "default" in words else switch
        if name in seen and seen[name].text != text:
            text = None
        seen[name] = Default(text, module.place(node.lineno))
    yield from seen.items()


def _default(node: ast.expr | None) -> str | None:
    """Return the text of a default, of ``field(default=…)`` too; None for none and for an expression."""
    if isinstance(node, ast.Call) and last_name(node.func) == "field":
        node = next((word.value for word in node.keywords if word.arg == "default"), None)
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None
