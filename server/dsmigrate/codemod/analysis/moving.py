"""What a call did, said of the same call from somewhere else: the things that it made are those of that place."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsmigrate.codemod.analysis.conditions import Condition, Literal, Several, both, either
from dsmigrate.codemod.analysis.events import Block, Event
from dsmigrate.codemod.analysis.machine import Frame
from dsmigrate.codemod.analysis.values import (
    UNBOUND,
    Bound,
    Choice,
    Const,
    Context,
    Expr,
    Forward,
    Lib,
    Member,
    Obj,
    Super,
    Tensor,
    Tup,
)

if TYPE_CHECKING:
    from dsmigrate.codemod.analysis.machine import Machine


class Move:
    """From the calls that lead to one place to those that lead to another; ``fresh`` are the things to be moved.

    ``of`` makes the things there, ``concerns`` only looks.
    """

    def __init__(self, run: Machine, fresh: Iterable[Obj], start: Context, end: Context) -> None:
        self._run = run
        self._fresh = frozenset(fresh)
        self._contexts: dict[Context, Context] = {start: end}
        self._node, self._node_there = start.node, end.node
        self._known: dict[Any, Any] = {}
        self._names: dict[int, Mapping[str, Any]] = {}
        self._frames: dict[int, Frame] = {}

    def context(self, context: Context) -> Context:
        """The calls that lead there, of those that lead here."""
        found = self._contexts.get(context)
        if found is None:
            up = None if context.up is None else self.context(context.up)
            found = context if up is context.up or up is None or context.node is None else up.below(context.node)
            self._contexts[context] = found
        return found

    def concerns(self, values: Iterable[Any]) -> bool:
        """Whether any of some values speaks of what is moved."""
        pending, seen = list(values), set[Any]()
        while pending:
            value = pending.pop()
            if isinstance(value, dict | list | set | frozenset | tuple):
                pending += [*value, *value.values()] if isinstance(value, dict) else value
            elif isinstance(value, Context):
                if self.context(value) is not value:
                    return True
            elif isinstance(value, _WITH_PARTS) and value not in seen:
                seen.add(value)
                if isinstance(value, Obj):
                    if value in self._fresh:
                        return True
                else:
                    pending += _parts(value)
        return False

    def of(self, value: Any) -> Any:
        """The same as it is there; what has nothing to do with the calls stays the object that it is."""
        if isinstance(value, str | int | Const | Lib) or value is None or value is UNBOUND:
            return value
        if isinstance(value, Context):
            return self.context(value)
        if isinstance(value, ast.AST):
            return self._node_there if value is self._node else value
        if isinstance(value, dict | list | set | frozenset | tuple):
            return self._collected(value)
        if isinstance(value, Frame):
            return self._frame(value)
        try:
            return self._known[value]
        except KeyError:
            found = self._known[value] = self._made(value)
            return found

    def _made(self, value: Any) -> Any:
        match value:
            case Obj():
                return self._thing(value)
            case Expr():
                args = tuple(map(self.of, value.args))
                if _are_same(args, value.args):
                    return value
                made = self._known[value] = Expr(value.op, *args, varies=value.varies, loops=value.loops)
                self._note(value, made)  # what it holds may lead back to it
                return made
            case Choice():
                options = tuple((self.of(condition), self.of(option)) for condition, option in value.options)
                same = all(a is c and b is d for (a, b), (c, d) in zip(options, value.options, strict=True))
                return value if same else Choice(options)
            case Literal():
                atom = self.of(value.atom)
                return value if atom is value.atom else Literal(atom, value.holds)
            case Several():
                parts = tuple(map(self.of, value.ordered))
                return value if _are_same(parts, value.ordered) else (both if value.all_of else either)(*parts)
            case Tup():
                items = tuple(map(self.of, value.items))
                return value if _are_same(items, value.items) else Tup(items)
            case Tensor() | Member() | Bound() | Super() | Forward():
                before = value.parts()
                after = tuple(map(self.of, before))
                return value if _are_same(after, before) else type(value)(*after)
        return value

    def _collected(self, values: Any) -> Any:
        if isinstance(values, dict):
            after = {self.of(key): self.of(value) for key, value in values.items()}
            same = _are_same(tuple(after.values()), tuple(values.values())) and _are_same(tuple(after), tuple(values))
            return values if same else after
        before = tuple(values)
        found = tuple(map(self.of, before))
        return values if _are_same(found, before) else type(values)(found)

    def _note(self, before: Expr, after: Expr) -> None:
        """What the run knows of a symbol is so of the one there."""
        run = self._run
        if before in run.held:
            run.held[after] = run.held.get(after, frozenset()) | self.of(run.held[before])
        if before in run.sizes:
            run.sizes[after] = self.of(run.sizes[before])
        if before in run.known_models:
            run.known_models.add(after)
        if before in run.used:
            run.used.setdefault(after, set()).update(run.used[before])

    def _thing(self, thing: Obj) -> Obj:
        run = self._run
        symbol = thing.data.get("for")
        if thing in self._fresh:
            assert thing.context is not None
            context = self.context(thing.context)
            if context is thing.context:
                return thing
            found = run.made_at(thing, self.of(thing.node), context, self.of(thing.cls))
            self._known[thing] = found  # its data may lead back to it
            found.data.update({key: self.of(value) for key, value in thing.data.items()})
            return found
        if isinstance(symbol, Expr) and run.shadows.get(symbol) is thing:
            there = self.of(symbol)
            return thing if there is symbol else run.shadow(there)
        return thing

    def _frame(self, frame: Frame) -> Frame:
        """The scope of a function that was defined in the call."""
        known = self._frames.get(id(frame))
        if known is None:
            obj = self.of(frame.obj)
            outer = None if frame.outer is None else self._frame(frame.outer)
            is_here = obj is frame.obj and outer is frame.outer
            known = frame if is_here else replace(frame, obj=obj, outer=outer, first=self.of(frame.first))
            self._frames[id(frame)] = known
        return known

    def names(self, names: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
        """What names hold."""
        return tuple(map(self._scope, names))

    def _scope(self, names: Mapping[str, Any]) -> Mapping[str, Any]:
        found = self._names.get(id(names))
        if found is None:
            found = self._names[id(names)] = self.of(names)
        return found

    def block(self, block: Block, up: Block) -> Block:
        """A block with all that happened in it."""
        found = replace(
            block,
            up=up,
            node=self.of(block.node),
            label=self.of(block.label),
            test=self.condition(block.test),
            names=self.names(block.names),
            result=self.of(block.result),
            items=[],
        )
        for item in block.items:
            if isinstance(item, Event):
                what = {name: self.of(value) for name, value in item.what.items()}
                node, context, names = self.of(item.node), self.context(item.context), self.names(item.names)
                found.items.append(replace(item, node=node, context=context, block=found, what=what, names=names))
            else:
                found.items.append(self.block(item, found))
        return found

    def condition(self, condition: Condition) -> Condition:
        """The same condition there."""
        found: Condition = self.of(condition)
        return found


_WITH_PARTS = (Obj, Expr, Choice, Literal, Several, Tup, Tensor, Member, Bound, Super, Forward)


def _parts(value: Any) -> Iterable[Any]:
    """What a value or a condition is made of."""
    match value:
        case Expr():
            return value.args
        case Choice():
            return itertools.chain.from_iterable(value.options)
        case Literal():
            return (value.atom,)
        case Several():
            return value.ordered
    parts: tuple[Any, ...] = value.parts()
    return parts


def _are_same(after: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    return all(one is other for one, other in zip(after, before, strict=True))
