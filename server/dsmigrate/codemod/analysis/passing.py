"""Which functions have to be given the engine: those that run backward or step and have no name that leads to it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from dsmigrate.codemod.analysis.analysis import paths_to
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Obj
from dsmigrate.codemod.program.module import Module

NAME = "engine"


@dataclass(frozen=True, slots=True)
class Handed:
    """The engine as an argument: at ``call`` in ``module`` as ``code``, to ``function``, which stands in ``home``."""

    module: Module
    call: ast.Call
    code: str
    function: ast.FunctionDef | ast.AsyncFunctionDef
    home: Module


@dataclass(frozen=True, slots=True)
class Passing:
    """How the engine gets to where it is needed. ``stuck`` are events that it cannot get to.

    ``optional`` are functions that other calls run too, in which nothing needs the engine.
    """

    functions: dict[ast.AST, str]
    handed: tuple[Handed, ...]
    stuck: tuple[Event, ...]
    optional: frozenset[ast.AST]


def passing(training: Training, more: Iterable[Event] = ()) -> Passing:
    """Follow the calls outwards from each place that needs the engine, to where a name leads to it.

    Such places run backward, step, or are ``more``.
    """
    functions: dict[ast.AST, str] = {}
    handed: dict[tuple[ast.AST, ast.AST], Handed] = {}
    stuck: list[Event] = []
    wrappers = set(training.wrappers)
    for event in (*training.backwards, *training.steps, *more):
        if "library" in event.what or training.engine_at(event) is not None:
            continue
        steps: list[tuple[Block, Obj]] = []
        found = False
        inside = event.module.step(event.node).function
        for block in event.block.around():
            if (
                block.kind is not BlockKind.CALL
                or not isinstance(block.label, Obj)
                or block.module is None
                or block.node is None
            ):
                continue
            if block.label.node is not inside:  # a generator that the loop around goes over
                continue
            steps.append((block, block.label))
            if paths_to(block.names, wrappers):
                found = True
                break
            inside = block.module.step(block.node).function
        if not found or not all(_takes(block, function) for block, function in steps):
            stuck.append(event)
            continue
        for block, function in steps:
            node = function.node
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            assert isinstance(block.node, ast.Call)
            assert block.module is not None
            functions[node] = NAME
            paths = paths_to(block.names, wrappers)
            home = function.data["frame"].module
            handed[block.node, node] = Handed(block.module, block.node, paths[0] if paths else NAME, node, home)
    optional = {
        block.label.node
        for block in training.analysis.root.blocks()
        if block.kind is BlockKind.CALL
        and isinstance(block.label, Obj)
        and block.label.node in functions
        and (block.node, block.label.node) not in handed
    }
    return Passing(functions, tuple(handed.values()), tuple(stuck), frozenset(optional))


def _takes(block: Block, function: Obj) -> bool:
    """Whether a function of the script is called by a call that can be given another argument."""
    return isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef) and isinstance(block.node, ast.Call)


__all__ = ["NAME", "Handed", "Passing", "passing"]
