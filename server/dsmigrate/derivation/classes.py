"""Optimizers and schedulers of a release, by reading its syntax: names, the classes behind them, their parameters."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from dsmigrate.files.syntax import dotted

Facts = dict[str, Any]
CLASS_FOLDERS = ("ops/adam", "ops/adagrad", "ops/lamb", "ops/lion", "runtime/fp16/onebit", "runtime/zero/muon")
GIVEN_BY_THE_ENGINE = frozenset({"self", "model_params", "params", "param_groups", "deepspeed", "optimizer"})
"""Parameters that no config sets."""


def optimizers(root: Path) -> dict[str, dict[str, Facts]]:
    """Return ``names`` (lower case, as DEEPSPEED_OPTIMIZERS lists them) and the ``classes`` of the release."""
    package = root / "deepspeed"
    constants = string_constants(package / "runtime" / "config.py")
    listed = [constants[name] for name in names_in(package / "runtime" / "config.py", "DEEPSPEED_OPTIMIZERS")]
    classes: dict[str, Facts] = {}
    for folder in CLASS_FOLDERS:
        for file in sorted((package / folder).glob("*.py")):
            classes = class_facts(file, root) | classes
    built = built_classes(package / "runtime" / "engine.py", constants)
    wanted = {kind for name in listed for kind in built.get(name, [])}
    source = "deepspeed/runtime/engine.py"
    return {
        "names": {name: {"classes": built.get(name, []), "source": source} for name in sorted(listed)},
        "classes": {kind: classes[kind] for kind in sorted(classes.keys() & wanted)},
    }


def schedulers(root: Path) -> dict[str, dict[str, Facts]]:
    """Return the ``names`` of VALID_LR_SCHEDULES, whose classes have the same names, and these ``classes``."""
    file = root / "deepspeed" / "runtime" / "lr_schedules.py"
    constants = string_constants(file)
    listed = {constants[name] for name in names_in(file, "VALID_LR_SCHEDULES")}
    classes = {name: facts for name, facts in class_facts(file, root).items() if name in listed}
    source = file.relative_to(root).as_posix()
    return {
        "names": {name: {"classes": [name], "source": source} for name in sorted(listed)},
        "classes": dict(sorted(classes.items())),
    }


def parsed(file: Path) -> ast.Module:
    """Return the syntax of a file of the release."""
    return ast.parse(file.read_text(encoding="utf-8"))


def assignments(file: Path) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and value of the assignments at the top of a module."""
    for node in parsed(file).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def string_constants(file: Path) -> dict[str, str]:
    """Return the string constants of a module by name."""
    return {
        name: value.value
        for name, value in assignments(file)
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def names_in(file: Path, name: str) -> list[str]:
    """Return the names that the list ``name`` of a module holds; empty when the module has no such list."""
    for target, value in assignments(file):
        if target == name and isinstance(value, ast.List | ast.Tuple):
            return [element.id for element in value.elts if isinstance(element, ast.Name)]
    return []


def class_facts(file: Path, root: Path) -> dict[str, Facts]:
    """Return every class of a file that has a constructor of its own: its parameters, with defaults."""
    source, constants = file.relative_to(root).as_posix(), string_constants(file)
    found: dict[str, Facts] = {}
    for node in parsed(file).body:
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    found[node.name] = parameters(part.args, constants) | {"source": source}
    return found


def parameters(spec: ast.arguments, constants: dict[str, str]) -> Facts:
    """Return ``params``: name to ``{"default": …}``, or to ``{}`` when there is none; ``anyParam`` for ``**kwargs``."""
    positional = [*spec.posonlyargs, *spec.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(spec.defaults)), *spec.defaults]
    every = [*zip(positional, defaults, strict=True), *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
    params = {
        parameter.arg: default_facts(default, constants)
        for parameter, default in every
        if parameter.arg not in GIVEN_BY_THE_ENGINE
    }
    return {"params": params} | ({"anyParam": True} if spec.kwarg is not None else {})


def default_facts(default: ast.expr | None, constants: dict[str, str]) -> Facts:
    """Return ``{"default": value}`` for a default that can be written in JSON."""
    if default is None:
        return {}
    if isinstance(default, ast.Name) and default.id in constants:
        return {"default": constants[default.id]}
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return {}
    return {"default": list(value) if isinstance(value, tuple) else value}


def built_classes(engine: Path, constants: dict[str, str]) -> dict[str, list[str]]:
    """Return optimizer name to the classes that the engine builds for it."""
    functions = {node.name: node for node in ast.walk(parsed(engine)) if isinstance(node, ast.FunctionDef)}
    builder = functions.get("_configure_basic_optimizer")
    if builder is None:
        return {}
    return {name: sorted(set(classes_for(name, builder.body, functions, constants))) for name in constants.values()}


def classes_for(
    name: str, body: list[ast.stmt], functions: dict[str, ast.FunctionDef], constants: dict[str, str]
) -> Iterator[str]:
    """Yield the classes that a block builds for optimizer ``name``, also in the methods of the engine that it calls."""
    local = {n.id for statement in body for n in ast.walk(statement) if is_stored(n)}
    for statement in body:
        parts: list[ast.AST] = [statement]
        if isinstance(statement, ast.If):
            tested = {
                constants[n.id] for n in ast.walk(statement.test) if isinstance(n, ast.Name) and n.id in constants
            }
            parts = [statement.test]
            if not tested or name in tested:
                yield from classes_for(name, statement.body, functions, constants)
            if not tested or name not in tested:
                yield from classes_for(name, statement.orelse, functions, constants)
        nodes = [inner for part in parts for inner in ast.walk(part)]
        owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in (node for node in nodes if id(node) not in owners):
            helper = functions.get(node.attr) if isinstance(node, ast.Attribute) and is_self(node.value) else None
            if helper is not None and helper.name.startswith("get_optimizer"):
                yield from classes_for(name, helper.body, functions, constants)
            built = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            if is_class(built) and built not in local:
                yield built


def is_class(name: str) -> bool:
    """Return whether a name is that of an optimizer class: torch's, or one in capital letters that is imported."""
    imported = name[:1].isupper() and not name.isupper() and "." not in name and not hasattr(builtins, name)
    return imported or (name.startswith("torch.optim.") and name.count(".") == 2)


def is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    """Return whether a name is assigned."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def is_self(node: ast.expr) -> bool:
    """Return whether an expression is ``self``."""
    return isinstance(node, ast.Name) and node.id == "self"
