"""The run of a script: the machine with what statements, expressions, calls and libraries do."""

from __future__ import annotations

import ast

from dsmigrate.codemod.analysis import attributes, by_use, calls, expressions, iteration, statements
from dsmigrate.codemod.analysis.conditions import Condition
from dsmigrate.codemod.analysis.events import Block
from dsmigrate.codemod.analysis.machine import Given, Machine, OnYield
from dsmigrate.codemod.analysis.state import is_at
from dsmigrate.codemod.analysis.summaries import apex, deepspeed, libraries, python, torch
from dsmigrate.codemod.analysis.values import Obj, Value

TABLES = (python, torch, apex, libraries, deepspeed)
"""What is known of libraries; to import a table is to note what stands in it."""


class Run(Machine):
    """The run of one entry script."""

    def main(self) -> Block:
        """Run the entry script as Python would."""
        module = self.project.module(self.project.entry, "__main__")
        if module is not None:
            top = self._module_object(module, "__main__")
            self._run_module(top)
        self.root.items[:0] = self.demanded[::-1]
        return self.root

    def execute(self, node: ast.stmt) -> Condition:
        """Run a statement by its kind; gives the condition under which the next one runs."""
        return statements.STATEMENTS[type(node)](self, node)

    def value(self, node: ast.expr) -> Value:
        """What an expression comes to, by its kind."""
        self.steps += 1
        is_at(node, self.context)
        return expressions.EXPRESSIONS[type(node)](self, node)

    def truth(self, value: Value) -> Condition:
        """Under which condition a value counts as true."""
        return expressions.truth(self, value)

    def compared(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        """What a comparison gives."""
        return expressions.compared(self, op, left, right)

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign to a name, an attribute, an item, or several at once."""
        expressions.bind(self, target, value)

    def attribute(self, of: Value, name: str, node: ast.AST) -> Value:
        """What an attribute of a value is."""
        return attributes.attribute(self, of, name, node)

    def set_attribute(self, of: Value, name: str, value: Value, node: ast.AST) -> None:
        """Assign to an attribute of whatever a value may be."""
        attributes.set_attribute(self, of, name, value, node)

    def item(self, of: Value, key: Value, node: ast.AST) -> Value:
        """What a subscript gives."""
        return expressions.item(self, of, key, node)

    def element(self, over: Value, loop: ast.AST) -> Value:
        """What stands for each item of something, in a loop over it."""
        return iteration.element(self, over, loop)

    def exact_items(self, value: Value) -> list[Value] | None:
        """The items of something of which each is known; None for anything else."""
        return iteration.exact_items(self, value)

    def call(self, function: Value, given: Given, node: ast.AST) -> Value:
        """Call a value; of several, each under its condition."""
        return by_use.given(self, calls.call(self, function, given, node), given, node)

    def call_member(self, of: Value, name: str, given: Given, node: ast.AST) -> Value:
        """Call a method."""
        return calls.call_member(self, of, name, given, node)

    def call_function(self, function: Obj, given: Given, node: ast.AST, *, on_yield: OnYield | None = None) -> Value:
        """Run a function of the script, with what a generator function yields handed to ``on_yield``."""
        return calls.call_function(self, function, given, node, on_yield=on_yield)
