"""Walks functions of config code: all branches, into every function that is called, with the config as a symbol.

Nothing is decided by a value of the config, so one walk sees the reads of every configuration. What the walk knows of
Python is what config code is written in; anything else is unknown, never wrong.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

from dsmigrate.derivation.child import calls, checks
from dsmigrate.derivation.child.expressions import default_value, evaluate, iterated, lift
from dsmigrate.derivation.child.record import MISSING, Outcome, Record
from dsmigrate.derivation.child.values import (
    UNKNOWN,
    Arguments,
    Known,
    Local,
    Sequence,
    Struct,
    Values,
    items,
    join,
    known,
)

DEEPEST = 40
HELPERS = "config_utils.py"
"""Reads through its helpers (``get_scalar_param`` …) belong to the file that calls them."""


class WalkError(Exception):
    """A function of the release that the walk does not get through; the message names it."""


class Frame:
    """One function that is being walked."""

    def __init__(self, function: FunctionType, record: Record, caller: Frame | None) -> None:
        self.function, self.record, self.caller = function, record, caller
        self.globals: dict[str, Any] = function.__globals__
        self.env: dict[str, Values] = {}
        self.returned: Values = ()
        self.tested: list[str] = []
        self.locals: tuple[ast.FunctionDef, ...] = ()
        file = Path(inspect.getsourcefile(function) or "")
        inherited = caller is not None and file.name == HELPERS
        self.source: str = caller.source if inherited and caller else file.relative_to(record.root).as_posix()

    @property
    def depth(self) -> int:
        """How many functions are being walked above this one."""
        return 0 if self.caller is None else self.caller.depth + 1

    def enter(self, function: object, arguments: Arguments) -> Values:
        """Walk a function that this one calls and return what it returns."""
        return walk(function, arguments, self.record, self)

    def enter_local(self, local: Local, arguments: Arguments) -> Values:
        """Walk a function that is defined inside this one; one that calls itself is walked once."""
        if local.node in self.locals:
            return ()
        inner = Frame(self.function, self.record, self)
        inner.locals = (*self.locals, local.node)
        defaults = local_defaults(local.node.args, self)
        inner.env = local.env | parameters(local.node.args, defaults, arguments)
        inner.block(local.node.body)
        return inner.returned

    @contextmanager
    def testing(self) -> Iterator[list[str]]:
        """Collect the paths whose presence is tested meanwhile."""
        outer, self.tested = self.tested, []
        inner = self.tested
        try:
            yield inner
        finally:
            self.tested = outer

    def note_default(self, tested: list[str], present: Values, absent: Values) -> None:
        """Note the default of a key: where its presence is tested, what stands for it when it is absent."""
        default = default_value(absent) if len(absent) == 1 else MISSING
        for item in items(present):
            if item.path in tested and default is not MISSING:
                self.record.read(item.path, self.source, default)

    def loops(self, generators: list[ast.comprehension], body: Callable[[], object]) -> None:
        """Run ``body`` in every turn of the loops of a comprehension."""
        if not generators:
            body()
            return
        first, *rest = generators
        for turn in iterated(evaluate(first.iter, self)):
            self.assign(first.target, turn)
            for test in first.ifs:
                evaluate(test, self)
            self.loops(rest, body)

    def assign(self, target: ast.expr, values: Values) -> None:
        """Store ``values`` in a name, an attribute, an item or a pattern of these."""
        if isinstance(target, ast.Name):
            self.env[target.id] = values
        elif isinstance(target, ast.Attribute):
            for owner in evaluate(target.value, self):
                if isinstance(owner, Struct):
                    owner.add(target.attr, values)
            self.env[ast.unparse(target)] = values
        elif isinstance(target, ast.Subscript):
            calls.stored(evaluate(target.value, self), evaluate(target.slice, self), values, self)
        elif isinstance(target, ast.Tuple | ast.List):
            rows = [value.parts for value in values if isinstance(value, Sequence)]
            for position, element in enumerate(target.elts):
                self.assign(element, join(*(row[position] for row in rows if position < len(row))) or UNKNOWN)

    def block(self, statements: list[ast.stmt]) -> None:
        """Walk statements; what follows an ``if`` that leaves is its ``else``."""
        for position, statement in enumerate(statements):
            if isinstance(statement, ast.If) and checks.leaves(statement.body):
                self.branch(statement, [*statement.orelse, *statements[position + 1 :]])
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Walk one statement."""
        if isinstance(node, ast.If):
            self.branch(node, node.orelse)
        elif isinstance(node, ast.For):
            self.each(node)
        elif isinstance(node, ast.Return):
            self.returned = join(self.returned, evaluate(node.value, self))
        elif isinstance(node, ast.Assign):
            values = evaluate(node.value, self)
            for target in node.targets:
                self.assign(target, values)
        elif isinstance(node, ast.AnnAssign):
            self.assign(node.target, evaluate(node.value, self))
        elif isinstance(node, ast.AugAssign):
            evaluate(node.value, self)
        elif isinstance(node, ast.Assert):
            evaluate(node.test, self)
            checks.asserted(node.test, self)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports(node)
        elif isinstance(node, ast.FunctionDef):
            self.env[node.name] = (Local(node, self.env),)
        elif not isinstance(node, ast.ClassDef | ast.AsyncFunctionDef):
            self.generic(node)

    def generic(self, node: ast.stmt) -> None:
        """Walk the expressions and the blocks of any other statement: try, with, while, raise, bare calls."""
        if isinstance(node, ast.While):
            self.doubt(node.body)
        for _, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            if parts and isinstance(parts[0], ast.stmt):
                self.block(parts)
            for part in parts:
                if isinstance(part, ast.expr):
                    evaluate(part, self)
                elif isinstance(part, ast.ExceptHandler):
                    self.block(part.body)
                elif isinstance(part, ast.withitem):
                    evaluate(part.context_expr, self)

    def branch(self, node: ast.If, orelse: list[ast.stmt]) -> None:
        """Walk both branches from the same names and join what they leave."""
        with self.testing() as tested:
            outcome = known(evaluate(node.test, self))
        if outcome is not None and isinstance(outcome.value, bool):
            self.block(node.body if outcome.value else orelse)
            return
        checks.refused(node, orelse, self)
        before, outer = dict(self.env), self.returned
        self.returned = ()
        self.block(node.body)
        present, returned = self.env, self.returned
        self.env, self.returned = dict(before), ()
        self.block(orelse)
        for name in [name for name in present if name in self.env]:
            if present[name] is not self.env[name]:
                self.note_default(tested, present[name], self.env[name])
        self.note_default(tested, returned, self.returned)
        self.env = {
            name: join(present.get(name, UNKNOWN), self.env.get(name, UNKNOWN))
            for name in [*present, *(other for other in self.env if other not in present)]
        }
        self.returned = join(outer, returned, self.returned)

    def each(self, node: ast.For) -> None:
        """Walk a loop, turn by turn where the turns are known; note a table of rejected keys."""
        turns = iterated(evaluate(node.iter, self))
        spellings: list[str] = []
        if not turns or not all(known(turn) for turn in turns):
            self.doubt(node.body)
        for turn in turns or [UNKNOWN]:
            self.assign(node.target, turn)
            self.rejections(node)
            spellings += self.first_of(node)
            self.block(node.body)
        for path in spellings[1:]:
            self.record.aliases.setdefault(path, spellings[0])
        self.block(node.orelse)

    def doubt(self, body: list[ast.stmt]) -> None:
        """Forget that the names which a loop assigns are what they were before it: its turns are not told apart."""
        for node in (node for statement in body for node in ast.walk(statement)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.env[node.id] = join(self.env.get(node.id, ()), UNKNOWN)

    def first_of(self, loop: ast.For) -> list[str]:
        """``for key in [NAME, OLD_NAME]: if key in config: return …``: the path of this turn; the first one wins."""
        first = loop.body[0]
        constant = isinstance(loop.target, ast.Name) and known(self.env.get(loop.target.id, ()))
        if not constant or not isinstance(first, ast.If) or not isinstance(first.body[-1], ast.Return | ast.Break):
            return []
        with self.testing() as tested:
            evaluate(first.test, self)
        return [path for path in tested if path.rpartition(".")[2] == constant.value]

    def rejections(self, loop: ast.For) -> None:
        """``for key, message in TABLE.items(): if key in section: raise …`` rejects the keys of the table."""
        for node in loop.body:
            if not (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)):
                continue
            with self.testing() as tested:
                evaluate(node.test, self)
            table = next((n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)), "")
            for path in tested:
                self.record.rejected.setdefault(path, (table, self.source))

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        """Bind what an import inside a function binds."""
        scope: dict[str, Any] = {
            key: self.globals[key] for key in ("__name__", "__package__", "__spec__") if key in self.globals
        }
        exec(compile(ast.Module([node], []), "<import>", "exec"), scope)  # noqa: S102 - among stubs, in a child
        for alias in node.names:
            name = (alias.asname or alias.name).partition(".")[0]
            if name in scope:
                self.env[name] = lift(scope[name])


@functools.cache
def definition(function: FunctionType) -> ast.FunctionDef | None:
    """Return the syntax of a function, or None for one that was generated."""
    try:
        module = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return None
    node = module.body[0]
    return node if isinstance(node, ast.FunctionDef) else None


def walk(function: object, arguments: Arguments, record: Record, caller: Frame | None = None) -> Values:
    """Walk ``function`` with these arguments and return what it can return; what is no function returns nothing."""
    target = inspect.unwrap(function) if callable(function) else function
    node = definition(target) if isinstance(target, FunctionType) else None
    if node is None or not isinstance(target, FunctionType):
        return ()
    frame = Frame(target, record, caller)
    if frame.depth > DEEPEST:
        raise WalkError(f"{frame.source}, {target.__qualname__} is called more than {DEEPEST} levels deep")
    for before in record.walked.setdefault(target, []):
        if (before.arguments, before.source) == (arguments, frame.source):
            return before.returned
    outcome = Outcome(arguments, frame.source)
    record.walked[target].append(outcome)
    signature = inspect.signature(target).parameters.values()
    defaults = {part.name: lift(part.default) for part in signature if part.default is not part.empty}
    frame.env = parameters(node.args, defaults, arguments)
    try:
        frame.block(node.body)
    except WalkError:
        raise
    except Exception as error:
        where = f"{frame.source}, {target.__qualname__}"
        raise WalkError(f"{where} cannot be walked: {type(error).__name__}: {error}") from error
    outcome.returned = frame.returned if checks.leaves(node.body) else join(frame.returned, (Known(None),))
    return outcome.returned


def parameters(spec: ast.arguments, defaults: dict[str, Values], arguments: Arguments) -> dict[str, Values]:
    """Return what each parameter is: the argument, else the default of the parameter."""
    names = [parameter.arg for parameter in [*spec.posonlyargs, *spec.args]]
    bound = dict(zip(names, arguments.positional, strict=False)) | arguments.named
    found = {name: bound.get(name, defaults.get(name, UNKNOWN)) for name in [*names, *(a.arg for a in spec.kwonlyargs)]}
    if spec.kwarg is not None:
        found[spec.kwarg.arg] = arguments.unpacked or UNKNOWN
    return found


def local_defaults(spec: ast.arguments, frame: Frame) -> dict[str, Values]:
    """Return the defaults of the parameters of a function inside ``frame``."""
    names = [parameter.arg for parameter in [*spec.posonlyargs, *spec.args]]
    last = zip(reversed(names), reversed(spec.defaults), strict=False)
    return {name: evaluate(default, frame) for name, default in last}
