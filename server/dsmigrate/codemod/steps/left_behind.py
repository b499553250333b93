"""Which zero_grad may find gradients: a backward ran since the last step, in the loop, beside it or in a helper.

What a function does to gradients is followed statement by statement, through branches, loops and calls. A state is the
set of what may be: ``True`` where gradients lie, ``False`` where none do; the empty set is not reached at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.sites import Sites
from dsmigrate.codemod.tree import Function, Node, Statement

State: TypeAlias = frozenset[bool]

_NOWHERE: State = frozenset()
_CLEAN: State = frozenset({False})
_FILLED: State = frozenset({True})


def finds_gradients(plan: Plan, sites: Sites) -> set[Statement]:
    """The zero_grads that may come behind a backward without a step between them."""
    walk = _Walk(plan, sites)
    for function in plan.tree.functions:
        if function in walk.reaching and not _is_called(plan, walk, function):
            state = walk.run(function, _CLEAN)
            if not function.is_module:  # whoever calls it may call it again
                walk.run(function, _CLEAN | state)
    return walk.found


def _is_called(plan: Plan, walk: _Walk, function: Function) -> bool:
    callers = (plan.function_of(call) for call in plan.flow.callers.get(function, ()))
    return any(caller is not function and caller in walk.reaching for caller in callers)


@dataclass(slots=True)
class _Ends:
    """The states in which a loop is left or begun anew, and a function is left, other than at the end of its body."""

    breaks: State = _NOWHERE
    continues: State = _NOWHERE
    returns: State = _NOWHERE


class _Walk:
    """What the functions that reach a backward, a step or a zero_grad make of the gradients."""

    def __init__(self, plan: Plan, sites: Sites) -> None:
        self.plan, self.zeroes = plan, set(sites.zeroes)
        self.found: set[Statement] = set()
        self.running: list[Function] = []
        self.known: dict[tuple[Function, State], State] = {}
        self.blocks: dict[Node, list[Statement]] = {}
        self.events: dict[Statement, list[State | list[Function]]] = {}
        backward = {id(call) for call in (*sites.backward, *plan.facts.get("handed_backward", ()))}
        steps = {id(call) for call in sites.steps}
        own = [*sites.backward, *sites.steps, *plan.facts.get("handed_backward", ())]
        self.reaching = {plan.function_of(call) for call in own} | {s.function for s in sites.zeroes}
        queue = list(self.reaching)
        while queue:
            for call in plan.flow.callers.get(queue.pop(), ()):
                caller = plan.function_of(call)
                if caller not in self.reaching:
                    self.reaching.add(caller)
                    queue.append(caller)
        for call in reversed(plan.tree.calls):  # arguments are there before what takes them
            what: State | list[Function] | None = (
                _FILLED if id(call) in backward else _CLEAN if id(call) in steps else None
            )
            if what is None:
                what = [function for function in plan.flow.callees(call) if function in self.reaching] or None
            if what is not None:
                self.events.setdefault(plan.tree.statement(call), []).append(what)
        for statement in plan.tree.statements:
            if statement.function in self.reaching:
                self.blocks.setdefault(statement.block, []).append(statement)

    def run(self, function: Function, state: State) -> State:
        """The state behind a call of a function."""
        key = (function, state)
        if function in self.running or not state:
            return state
        if key not in self.known:
            self.running.append(function)
            ends = _Ends()
            node = function.node
            body = node.body if isinstance(node, cst.FunctionDef) else node
            self.known[key] = self._block(body, state, ends) | ends.returns
            self.running.pop()
        return self.known[key]

    def _block(self, block: Node | None, state: State, ends: _Ends) -> State:
        for statement in self.blocks.get(block, ()) if block is not None else ():
            state = self._statement(statement, state, ends)
        return state

    def _statement(self, statement: Statement, state: State, ends: _Ends) -> State:
        node = statement.node
        if statement in self.zeroes:
            if True in state:
                self.found.add(statement)
            return _CLEAN if state else state
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            return state
        for event in self.events.get(statement, ()):
            if isinstance(event, list):
                state = frozenset().union(*(self.run(function, state) for function in event))
            elif state:
                state = event
        if isinstance(node, cst.BaseCompoundStatement):
            return self._compound(node, state, ends)
        if isinstance(node, cst.Return):
            ends.returns |= state
        elif isinstance(node, cst.Break):
            ends.breaks |= state
        elif isinstance(node, cst.Continue):
            ends.continues |= state
        elif not isinstance(node, cst.Raise):
            return state
        return _NOWHERE

    def _compound(self, node: Node, state: State, ends: _Ends) -> State:
        if isinstance(node, cst.If):
            return self._block(node.body, state, ends) | self._orelse(node.orelse, state, ends)
        if isinstance(node, cst.With):
            return self._block(node.body, state, ends)
        if isinstance(node, cst.For | cst.While):
            return self._loop(node, state, ends)
        if isinstance(node, cst.Try | cst.TryStar):
            return self._try(node, state, ends)
        if isinstance(node, cst.Match):
            return state.union(*(self._block(case.body, state, ends) for case in node.cases))
        return state

    def _orelse(self, orelse: cst.If | cst.Else | None, state: State, ends: _Ends) -> State:
        if orelse is None:
            return state
        if isinstance(orelse, cst.If):
            return self._statement(self.plan.tree.statement_of[orelse], state, ends)
        return self._block(orelse.body, state, ends)

    def _loop(self, node: cst.For | cst.While, state: State, ends: _Ends) -> State:
        inner = _Ends()
        before: State | None = None
        while state != before:
            before = state
            state |= self._block(node.body, state, inner) | inner.continues
        ends.returns |= inner.returns
        return self._orelse(node.orelse, state, ends) | inner.breaks

    def _try(self, node: cst.Try | cst.TryStar, state: State, ends: _Ends) -> State:
        """A body may fail anywhere: its handlers find what was there before it, or behind it."""
        done = self._block(node.body, state, ends)
        after = self._orelse(node.orelse, done, ends)
        for handler in node.handlers:
            after |= self._block(handler.body, state | done, ends)
        return self._block(node.finalbody.body, after, ends) if node.finalbody is not None else after
