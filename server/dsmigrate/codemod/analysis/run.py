"""The run of a script: the machine with what statements, expressions, calls and libraries do."""

from __future__ import annotations

import ast

from dsmigrate.codemod.analysis import attributes, calls, expressions, iteration, statements
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
        return self.root

    def execute(self, node: ast.stmt) -> Condition:
        return statements.STATEMENTS[type(node)](self, node)

    def value(self, node: ast.expr) -> Value:
        self.steps += 1
        is_at(node, self.context)
        return expressions.EXPRESSIONS[type(node)](self, node)

    def truth(self, value: Value) -> Condition:
        return expressions.truth(self, value)

    def compared(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        return expressions.compared(self, op, left, right)

    def bind(self, target: ast.expr, value: Value) -> None:
        expressions.bind(self, target, value)

    def attribute(self, of: Value, name: str, node: ast.AST) -> Value:
        return attributes.attribute(self, of, name, node)

    def set_attribute(self, of: Value, name: str, value: Value, node: ast.AST) -> None:
        attributes.set_attribute(self, of, name, value, node)

    def item(self, of: Value, key: Value, node: ast.AST) -> Value:
        return expressions.item(self, of, key, node)

    def element(self, over: Value, loop: ast.AST) -> Value:
        return iteration.element(self, over, loop)

    def exact_items(self, value: Value) -> list[Value] | None:
        return iteration.exact_items(self, value)

    def call(self, function: Value, given: Given, node: ast.AST) -> Value:
        return calls.call(self, function, given, node)

    def call_member(self, of: Value, name: str, given: Given, node: ast.AST) -> Value:
        return calls.call_member(self, of, name, given, node)

    def call_function(self, function: Obj, given: Given, node: ast.AST, *, on_yield: OnYield | None = None) -> Value:
        return calls.call_function(self, function, given, node, on_yield=on_yield)
