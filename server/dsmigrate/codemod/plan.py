"""What the steps agree on before anything is edited: decisions, edits, config values, and where the engine lives."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from dsmigrate.codemod.edit import Edits
from dsmigrate.codemod.evaluation_order import runs_behind
from dsmigrate.codemod.flow import Binding, Flow, Place
from dsmigrate.codemod.model import Change, Kind, Options
from dsmigrate.codemod.names import Imports, dotted
from dsmigrate.codemod.roles import Roles, Wrap
from dsmigrate.codemod.tree import Function, Node, Part, Statement, Tree, descendants

_COMMENT_WIDTH = 117


class RefusedError(Exception):
    """A reason, with its line, why the file cannot be converted without risk to the training."""

    def __init__(self, code: str, line: int, end_line: int, message: str, reason: str, path: str = "") -> None:
        super().__init__(message)
        self.change = Change(code, Kind.REFUSED, line, end_line, message, reason)
        self.path = path


@dataclass(slots=True)
class EngineSite:
    """Where ``deepspeed.initialize`` goes: after ``anchor`` in ``function``.

    ``target`` is the source text that receives the engine, ``model`` the text of the raw model handed over and
    ``optimizer`` that of the client optimizer. ``replaces`` is the wrap statement that the call stands in for, if the
    wrap itself is the site.
    """

    function: Function
    anchor: Statement
    target: str
    model: str
    optimizer: str
    replaces: Statement | None = None
    latest: Statement | None = None

    @property
    def order(self) -> int:
        """Statements of ``function`` with a larger order see the engine, the others the raw model."""
        return self.anchor.last_order

    @property
    def latest_order(self) -> int:
        """Up to this order the engine may still be made: nothing before speaks of the model or the optimizer."""
        return (self.latest or self.anchor).last_order


@dataclass(slots=True)
class RuntimeValue:
    """A config value that the script itself knows only when it runs: ``config[path] = expression``."""

    path: tuple[str, ...]
    expression: str
    line: int


@dataclass(slots=True)
class Plan:
    """The state that the steps share; see each field."""

    tree: Tree
    imports: Imports
    roles: Roles
    options: Options
    edits: Edits
    changes: dict[Part, list[Change]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    runtime: list[RuntimeValue] = field(default_factory=list)
    site: EngineSite | None = None
    wraps: list[Wrap] = field(default_factory=list)
    kept_wraps: list[Wrap] = field(default_factory=list)
    group: set[str] = field(default_factory=set)
    needed_imports: dict[str, str] = field(default_factory=dict)
    helpers: list[str] = field(default_factory=list)
    before_engine: list[str] = field(default_factory=list)
    after_engine: list[str] = field(default_factory=list)
    handled: set[Node] = field(default_factory=set)
    facts: dict[str, Any] = field(default_factory=dict)
    handed_over: dict[Function, str] = field(default_factory=dict)

    @property
    def flow(self) -> Flow:
        """The bindings of the file."""
        return self.roles.flow

    @property
    def zero_stage(self) -> int:
        """The ZeRO stage of the config: what was asked for, else 2, or what the script itself does or needs.

        That is 0 where it needs whole gradients, and 1 where it sharded the optimizer state and nothing else.
        """
        if self.options.zero_stage is not None:
            return self.options.zero_stage
        if "stage_zero" in self.facts:
            return 0
        return 1 if "sharded_state" in self.facts else 2

    def needs_full_gradients(self, code: str, where: Node | Statement, message: str, reason: str) -> None:
        """Something works at ZeRO 0 only: choose that stage where it is open, else mark the place for the person."""
        self.facts["full_gradients"] = True
        self.facts.setdefault("looks", []).append(where if isinstance(where, Statement) else self.tree.statement(where))
        self.needs_stage_zero(code, where, message, reason)

    def needs_stage_zero(self, code: str, where: Node | Statement, message: str, reason: str) -> None:
        """As ``needs_full_gradients``, for what only the partitioning disturbs."""
        if self.options.zero_stage in (None, 0):
            self.facts["stage_zero"] = True
            if self.options.zero_stage is None:
                message += "; the config gets ZeRO stage 0"
            self.kept(code, where, message, reason)
        else:
            self.todo(code, where, f"{message}; that works at ZeRO stage 0 only", reason)

    # -- recording ------------------------------------------------------------------------------------------------

    def note(self, code: str, kind: Kind, where: Node | Statement, message: str, reason: str) -> None:
        """Record a decision about a node or statement."""
        statement = where if isinstance(where, Statement) else self.tree.statement(where)
        first, last = statement.line, statement.end_line
        if isinstance(statement.node, cst.BaseCompoundStatement):
            last = self.header_end(statement)
        change = Change(code, kind, first, last, message, reason)
        changes = self.changes.setdefault(self.part_of(statement), [])
        if change not in changes:
            changes.append(change)

    def part_of(self, statement: Statement) -> Part:
        """The file that a statement stands in."""
        return self.tree.part_of_top[statement.function.top]

    def header_end(self, statement: Statement) -> int:
        """The last line of a compound statement's header."""
        inner = list(self.tree.statements[statement.order + 1 : statement.last_order + 1])
        return max(statement.line, inner[0].line - 1) if inner and inner[0].line > statement.line else statement.line

    def converted(self, code: str, where: Node | Statement, message: str, reason: str) -> None:
        """Record that a construct was rewritten."""
        self.note(code, Kind.CONVERTED, where, message, reason)

    def kept(self, code: str, where: Node | Statement, message: str, reason: str) -> None:
        """Record that a construct stays as it is, or behaves a little differently, and why."""
        self.note(code, Kind.KEPT, where, message, reason)

    def todo(self, code: str, where: Node | Statement, message: str, reason: str) -> None:
        """Mark a construct for the person, in the report and above its line."""
        statement = where if isinstance(where, Statement) else self.tree.statement(where)
        self.note(code, Kind.TODO, statement, message, reason)
        target = statement.line_node
        if _is_elif(self.tree, target):
            while _is_elif(self.tree, target):
                target = self.tree.parent[target]
        if not isinstance(target, cst.BaseSmallStatement):
            depth = sum(isinstance(node, cst.IndentedBlock) for node in self.tree.ancestors(target))
            module = self.part_of(statement).module
            width = _COMMENT_WIDTH - depth * len(module.default_indent.expandtabs(4))
            for line in textwrap.wrap(f"TODO(dsmigrate {code}): {message}", max(width, 60), subsequent_indent="  "):
                self.edits.comment(target, line)

    def refuse(self, code: str, where: Node | Statement, message: str, reason: str) -> RefusedError:
        """The refusal to raise, at the line of a node or statement."""
        statement = where if isinstance(where, Statement) else self.tree.statement(where)
        return RefusedError(code, statement.line, statement.end_line, message, reason, self.part_of(statement).path)

    def need(self, module: str, statement: str | None = None) -> None:
        """Make sure that a module is imported in the result."""
        self.needed_imports.setdefault(module, statement or f"import {module}")

    def set_at_run_time(self, path: tuple[str, ...], expression: str, where: Node | Statement) -> None:
        """Let the script set a config value from one of its own expressions, just before ``initialize``."""
        statement = where if isinstance(where, Statement) else self.tree.statement(where)
        self.runtime = [value for value in self.runtime if value.path != path]
        self.runtime.append(RuntimeValue(path, expression, statement.line))

    # -- asking ---------------------------------------------------------------------------------------------------

    def code(self, node: Node) -> str:
        """The source text of a node."""
        return self.tree.code(node)

    def function_of(self, node: Node) -> Function:
        """The function that a node stands in."""
        return self.tree.statement(node).function

    def tags(self, node: Node) -> set[str]:
        """The role tags of an expression where it stands."""
        return self.roles.here(node)

    def is_model_like(self, node: Node) -> bool:
        """Whether an expression may be any wrapped model, before it is known which one is trained."""
        return any(tag[0] in "ER" for tag in self.tags(node))

    def is_ours(self, node: Node) -> bool:
        """Whether an expression may be the model that is trained (wrapped or not)."""
        return any(tag[0] in "ER" and tag[1:] in self.group for tag in self.tags(node))

    def is_engine(self, node: Node) -> bool:
        """Whether an expression will hold the engine where it stands, in the converted script."""
        tags = self.tags(node)
        if not any(tag[0] == "E" and tag[1:] in self.group for tag in tags):
            return False
        return not self.is_before_engine(node) and not self._is_kept_raw(node)

    def _is_kept_raw(self, node: Node) -> bool:
        """Whether a node names what an object was given before the engine was made (the backbone of a wrapper)."""
        if self.site is None or not isinstance(node, cst.Attribute):
            return False
        place = self.place_of(node)
        return place is not None and place[0] == "a" and place in self.raw_places

    def is_before_engine(self, node: Node) -> bool:
        """Whether a node runs before the engine exists, as far as the order of one function shows."""
        site = self.site
        if site is None:
            return False
        statement = self.tree.statement(node)
        if statement.function is site.function:
            return statement.order <= site.order
        until = self.upstream.get(statement.function)
        if until is None:
            return self._runs_before(statement.function)
        maker = self.facts["engine_calls"].get(statement.function)
        return statement.order <= until and (maker is None or not runs_behind(self.tree, node, maker))

    def _runs_before(self, function: Function) -> bool:
        """Whether every call of a function happens before the engine exists."""
        known: dict[Function, bool] = self.facts.setdefault("runs_before", {})
        if function not in known:
            known[function] = False  # functions that call each other: not provably before
            callers = [call for call in self.flow.callers.get(function, ()) if self.function_of(call) is not function]
            known[function] = bool(callers) and all(self.is_before_engine(call) for call in callers)
        return known[function]

    @property
    def upstream(self) -> dict[Function, int]:
        """Functions on the way to the engine, with the order up to which their statements run before it exists."""
        found: dict[Function, int] = self.facts.setdefault("upstream", {})
        return found

    def engine_in(self, node: Node) -> str | None:
        """The source text by which the engine is known where a node stands, or None."""
        statement = self.tree.statement(node)
        return self.engine_name(statement.function)

    def engine_name(self, function: Function) -> str | None:
        """The name of the engine in a function: the variable that is called there, else any that holds it."""
        candidates: dict[str, int] = {}
        handed: str | None = self.handed_over.get(function)
        if handed is not None:
            return handed
        scope: Function | None = function
        while scope is not None:
            for place, tags in self.roles.env.items():
                if place[0] == "v" and place[1] == id(scope) and self._holds_engine(tags):
                    name = place[2]
                    if self.flow.variable(name, function) == place:
                        candidates.setdefault(name, 1 if scope is function else 0)
            scope = scope.parent
        cls = function.class_seen
        if cls is not None and function.self_name is not None:
            family = self.flow.family(cls)
            for place, tags in self.roles.env.items():
                if place[0] == "a" and place[1] == family and self._holds_engine(tags):
                    candidates.setdefault(f"{function.self_name}.{place[2]}", 1)
        for name in self._through_objects(function):
            candidates.setdefault(name, 0)
        for place, tags in self.roles.env.items():
            if place[0] == "n" and self._holds_engine(tags):
                base = str(place[1])
                root = base.partition(".")[0]
                if root in function.local_names and base:
                    candidates.setdefault(f"{base}.{place[2]}", 0)
        if self.site is not None and function is self.site.function:
            candidates[self.site.target] = candidates.get(self.site.target, 0) + 20
        for name in [name for name in candidates if self._is_raw(name, function)]:
            del candidates[name]
        if not candidates:
            return None
        for call in self.tree.calls:
            text = dotted(call.func)
            if text in candidates and self.tree.statement(call).function is function:
                candidates[text] += 10
        for use in descendants(function.node) if not function.is_module else ():
            text = dotted(use) if isinstance(use, cst.Name | cst.Attribute) else None
            if text in candidates:
                candidates[text] += 1
        return max(candidates, key=lambda name: candidates[name])

    def _through_objects(self, function: Function) -> Iterator[str]:
        """``task.net`` for each object that a function sees, whose class keeps the engine in that attribute."""
        if self.site is None:
            return
        kept = self.site.target.rpartition(".")[2] if "." in self.site.target else None
        holders = {
            (place[1], place[2])
            for place in self.roles.env
            if place[0] == "a" and self.holds_engine(place) and place not in self.raw_places
            if kept in (None, place[2])  # other attributes may hold the same model as it was before
        }
        for place, classes in self.flow.kinds.items() if holders else ():
            text = place[2] if self.flow.variable(place[2], function) == place else None
            if (
                place[0] == "a"
                and function.class_seen is not None
                and function.self_name is not None
                and self.flow.family(function.class_seen) == place[1]
            ):
                text = f"{function.self_name}.{place[2]}"
            families = {self.flow.family(cls) for cls in classes}
            if text is not None:
                yield from (
                    f"{text}.{name}" for family, name in sorted((str(a), b) for a, b in holders) if family in families
                )

    def holds_engine(self, place: Place) -> bool:
        """Whether a place may hold the wrapped model that is trained."""
        return self._holds_engine(self.roles.env.get(place, set()))

    def _is_raw(self, name: str, function: Function) -> bool:
        """Whether a name was given the plain model, before the engine was made, and never the engine."""
        if self.site is None or "." in name:
            return False
        return self.flow.variable(name, function) in self.raw_places

    @property
    def raw_places(self) -> set[Place]:
        """Variables and parameters that only ever get the plain model in the converted script (``model_without_ddp``)."""
        found: set[Place] | None = self.facts.get("raw_places")
        if found is not None:
            return found
        found = set()
        self.facts["raw_places"] = found
        holders = {place for place, tags in self.roles.env.items() if self._holds_engine(tags)}
        site = self.site  # a parameter elsewhere may have the name of the engine's variable and get the plain model
        target = None if site is None else self.flow.variable(site.target, site.function)
        while True:
            more = {
                place
                for place in holders - found
                if place != target
                and (bindings := self.flow.by_place.get(place))
                and all(self._gives_raw(binding, found) for binding in bindings)
            }
            if not more:
                return found
            found |= more

    def _gives_raw(self, binding: Binding, raw: set[Place]) -> bool:
        """Whether a binding hands on the plain model: a raw place, ``.module``, or the model before the engine."""
        value = binding.value
        if binding.index is not None or binding.kind not in ("assign", "argument"):
            return False
        if isinstance(value, cst.Attribute) and value.attr.value == "module":
            return True
        place = self.flow.place(value, binding.function)
        if place is None or any(wrap.call is value for wrap in self.wraps):
            return False
        early = self.is_before_engine(value) and (binding.kind == "assign" or self._makes_object(binding))
        return place in raw or (early and isinstance(value, cst.Name))

    def _makes_object(self, binding: Binding) -> bool:
        """Whether an argument goes to the constructor of an object, other than the one that makes the engine."""
        assert self.site is not None
        return any(
            function.name == "__init__" and function is not self.site.function
            for function in self.tree.functions
            if binding.place[:2] == ("v", id(function))
        )

    def _holds_engine(self, tags: set[str]) -> bool:
        return any(tag[0] == "E" and tag[1:] in self.group for tag in tags)

    def statements_between(self, first: Statement, last: Statement) -> Iterator[Statement]:
        """Statements of one function strictly between two of its statements, in source order."""
        for statement in first.function.statements:
            if first.last_order < statement.order < last.order:
                yield statement

    def place_of(self, node: Node) -> Place | None:
        """The place that an expression names where it stands."""
        return self.flow.place(node, self.function_of(node))


def _is_elif(tree: Tree, node: Node) -> bool:
    parent = tree.parent.get(node)
    return isinstance(node, cst.If) and isinstance(parent, cst.If) and parent.orelse is node
