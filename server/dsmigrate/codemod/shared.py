"""Code that runs with other models too: what changes there suits them as well, or stands under a test for the engine."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from dsmigrate.codemod.analysis.analysis import Analysis, under
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event
from dsmigrate.codemod.analysis.values import Obj
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.arms import asks_for_engine, is_in_old_form
from dsmigrate.codemod.program.edits import AddArgument, AddParameter, Edit, Insert
from dsmigrate.codemod.program.module import Module, names_of
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG120",
        "A test for the engine where other scripts run the same code",
        "What changes in a function that others run too stands under ds_compat.is_engine; what they run stays as it was.",
        "A module that several scripts use is changed only if all of them keep working.",
        "dsmigrate",
        Kind.CONVERTED,
    ),
    Idea(
        "MG914",
        "Several scripts need a module in different forms",
        "A module that the conversion would change is used by another script, which would stop working.",
        "Where the code is, no name leads to the model, so that no test can tell the engine from what the other script "
        "has. Nothing is written.",
        "dsmigrate",
        Kind.REFUSED,
    ),
)
Place: TypeAlias = tuple[str, int]
"""A function, by its file and its first line; line 0 is the file's own code, -1 what of it is run where it is the script."""


def places_run(analysis: Analysis) -> frozenset[Place]:
    """What a script runs of the files of its project."""
    found: set[Place] = set()
    for block in analysis.root.blocks():
        if block.kind is BlockKind.MODULE and block.module is not None:
            found.add((block.module.path, 0))
        elif block.kind is BlockKind.CALL and isinstance(block.label, Obj) and "frame" in block.label.data:
            found.add((block.label.data["frame"].module.path, int(getattr(block.label.node, "lineno", 0))))
    return frozenset(found)


def place_of(module: Module, node: ast.AST) -> Place:
    """The function that a node stands in."""
    function = module.step(node).function
    if function is not None:
        return module.path, function.lineno
    is_main = any(
        isinstance(one.node, ast.If) and ast.unparse(one.node.test) in _MAIN for one in module.step(node).around()
    )
    return module.path, -1 if is_main else 0


_MAIN = frozenset(("__name__ == '__main__'", "'__main__' == __name__"))


@dataclass(frozen=True, slots=True)
class Clash:
    """A change that would break others, where no test can tell the engine from what they have."""

    decision: Decision
    place: Place


@dataclass(eq=False)
class Sharing:
    """Who runs the code of a training: ``others`` is what scripts run that stay as they are."""

    facts: Facts
    others: Collection[Place] = frozenset()

    @cached_property
    def calls(self) -> dict[ast.AST, list[Block]]:
        """The calls of each function of the project."""
        found: dict[ast.AST, list[Block]] = defaultdict(list)
        for block in self.facts.training.analysis.root.blocks():
            if block.kind is BlockKind.CALL and isinstance(block.label, Obj) and block.label.node is not None:
                found[block.label.node].append(block)
        return found

    @cached_property
    def home(self) -> ast.AST | None:
        """The function that makes the engine."""
        site = self.facts.site
        return site.module.step(site.node).function

    @cached_property
    def events(self) -> dict[ast.AST | None, list[Event]]:
        """The events of each function's own text."""
        found: dict[ast.AST | None, list[Event]] = defaultdict(list)
        for event in self.facts.training.analysis.events:
            found[event.module.step(event.node).function].append(event)
        return found

    def fitted(self, decisions: Iterable[Decision]) -> Iterator[Decision | Clash]:
        """The decisions, with tests around what others run in its old form."""
        tested: dict[ast.AST | None, Edit] = {}
        for one in decisions:
            left = tuple(edit for edit in one.edits if not _is_done(edit))
            decision = one if len(left) == len(one.edits) else replace(one, edits=left)
            if decision.suits_all or not any(self.is_shared(edit.module, edit.node) for edit in decision.edits):
                yield decision
                continue
            edits = []
            for edit in decision.edits:
                fitted = self._fitted(edit)
                if fitted is None:
                    yield decision.beside or Clash(decision, place_of(edit.module, edit.node))
                    break
                edits.append(fitted)
                if fitted is not edit and fitted.guard:
                    tested.setdefault(edit.module.step(edit.node).function, edit)
            else:
                yield replace(decision, edits=tuple(edits), parts=decision.parts | {"is_engine"})
        for function, edit in tested.items():
            name = getattr(function, "name", edit.module.path)
            message = told(
                "{name} runs with other models too: what changes stands under ds_compat.is_engine", name=name
            )
            yield Decision("MG120", Kind.CONVERTED, edit.module, edit.node, message, "they keep what they run now")

    def _fitted(self, edit: Edit) -> Edit | None:
        if not self.is_shared(edit.module, edit.node):
            return edit
        if isinstance(edit, AddParameter):
            return edit if edit.default is not None else replace(edit, default="None")
        if isinstance(edit, AddArgument):
            return edit
        if edit.module.step(edit.node).function is self.home:  # no name is an engine before it is made
            return None
        name = self.engine_name(edit.module, edit.node)
        return None if name is None else replace(edit, guard=f"ds_compat.is_engine({name})")

    def is_shared(self, module: Module, node: ast.AST) -> bool:
        """Whether the function that a node stands in is run by others, or in this script with another model too."""
        function = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else module.step(node).function
        place = place_of(module, node) if function is None else (module.path, function.lineno)
        if place in self.others:
            return True
        if function is None or function in self.facts.passing.functions or function is self.home:
            return False
        told = [self._has_engine(block, function) for block in self.calls.get(function, ())]
        return True in told and False in told

    def _has_engine(self, block: Block, function: ast.AST) -> bool | None:
        """Whether the engine is at hand in a call of a function; None where nothing happens in it that counts."""
        training = self.facts.training
        for outer in block.around():  # a run without a wrapper gets the engine too
            if outer.kind is BlockKind.CALL and isinstance(outer.label, Obj) and outer.label.node is self.home:
                if not any(under(wrap.block, outer) for wrap in training.wraps):
                    return None
        events = [event for event in block.events() if event.module.step(event.node).function is function]
        has_engine = any(training.engine_at(event) is not None for event in events)
        return has_engine or (None if not events or training.is_alone(block) else False)

    def engine_name(self, module: Module, node: ast.AST) -> str | None:
        """How the engine is called where a node stands."""
        statement, function = module.step(node).node, module.step(node).function
        events = self.events.get(function, [])
        near = [event for event in events if event.module is module and event.module.step(event.node).node is statement]
        names = (self.facts.engine(event) for event in [*near, *events] if event.module is module)
        return next((name for name in names if name is not None), None)


def _is_done(edit: Edit) -> bool:
    """Whether the conversion of another script has made an edit already."""
    module, node = edit.module, edit.node
    match edit:
        case AddParameter(node=ast.FunctionDef() | ast.AsyncFunctionDef() as function, name=name):
            return name in names_of(function).local and ast.unparse(function.args).endswith(f"{name}=None")
        case AddArgument(node=ast.Call() as call, name=name):
            return any(keyword.arg == name for keyword in call.keywords)
    step = module.step(node)
    if isinstance(edit, Insert) and all(isinstance(part, str) for line in edit.code for part in line):
        added = ["".join(map(str, line)) for line in edit.code]
        return any(
            isinstance(one, ast.If)
            and asks_for_engine(one.test)
            and [ast.unparse(inner) for inner in one.body] == added
            for one in step.body
        )
    return is_in_old_form(module, node)
