"""Rewritings of scripts that keep what they do: each takes a module and changes all places that it can."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import TypeAlias

from .rewriting import (
    Fresh,
    Renamed,
    assign,
    assigned,
    blocks,
    each_statement,
    functions,
    is_builtin,
    is_plain,
    loaded,
    name,
    negated,
    own_nodes,
    parameters,
    rebinds,
)

Files: TypeAlias = dict[str, str]
"""Files that a rewriting makes beside the script, by name."""
Rewriting: TypeAlias = Callable[[ast.Module, Fresh], "Files | None"]
REWRITINGS: dict[str, Rewriting] = {}


def rewriting(function: Rewriting) -> Rewriting:
    """Add a rewriting to the table, under its name."""
    REWRITINGS[function.__name__.replace("_", " ")] = function
    return function


def rewritten(source: str, how: str) -> tuple[str, Files] | None:
    """A script in another spelling with the files it needs; None where no place was found for it."""
    tree = ast.parse(source)
    before = ast.dump(tree)
    files = REWRITINGS[how](tree, Fresh(tree)) or {}
    ast.fix_missing_locations(tree)
    if ast.dump(tree) == before:
        return None
    text = ast.unparse(tree)
    compile(text, "script", "exec")
    return text, files


# -- names -----------------------------------------------------------------------------------------------------------


@rewriting
def other_names(tree: ast.Module, fresh: Fresh) -> None:
    """Local variables get names that say nothing."""
    for function in functions(tree):
        if not is_plain(function):
            continue
        names = {old: fresh("strawberry") for old in assigned(function) if old not in parameters(function)}
        for node in own_nodes(function):
            if isinstance(node, ast.Name) and node.id in names:
                node.id = names[node.id]
            elif isinstance(node, ast.ExceptHandler) and node.name in names:
                node.name = names[node.name]
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    bound = (alias.asname or alias.name).partition(".")[0]
                    if bound in names and (alias.asname or "." not in alias.name):
                        alias.asname = names[bound]
                    elif bound in names:
                        alias.asname = None


@rewriting
def other_function_names(tree: ast.Module, fresh: Fresh) -> None:
    """Functions of the module get names that say nothing."""
    bound = assigned(tree)
    names = {
        one.name: fresh("vanilla") for one in tree.body if isinstance(one, ast.FunctionDef) and bound[one.name] == 1
    }
    names = {old: new for old, new in names.items() if not any(rebinds(one, old) for one in tree.body)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = names[node.id]
    for one in tree.body:
        if isinstance(one, ast.FunctionDef) and one.name in names:
            one.name = names[one.name]


def _held(tree: ast.Module, fresh: Fresh, hold: Callable[[str, str], tuple[ast.stmt, ast.expr]]) -> None:
    """What is made once in a block is held by something else as well, and read there by all that follows in it."""
    for scope in [*functions(tree), tree]:
        counts = assigned(scope)
        if any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(scope)):
            continue
        inside = [block for block in blocks(scope) if all(one in set(own_nodes(scope)) for one in block[:1])]
        for block in inside:
            for index in reversed(range(len(block) - 1)):
                match block[index]:
                    case ast.Assign(targets=[ast.Name(id=old)], value=ast.Call()) if counts.get(old) == 1:
                        rest = block[index + 1 :]
                        uses = sum(
                            isinstance(node, ast.Name) and node.id == old for one in rest for node in ast.walk(one)
                        )
                        if uses and not any(rebinds(one, old) for one in rest):
                            statement, reading = hold(old, fresh("kiwi"))
                            change = Renamed({old: reading})
                            block[index + 1 :] = [statement, *(change.visit(one) for one in rest)]


@rewriting
def aliases(tree: ast.Module, fresh: Fresh) -> None:
    """``net = model``."""
    _held(tree, fresh, lambda old, new: (assign(new, name(old)), name(new)))


@rewriting
def items_of_dictionaries(tree: ast.Module, fresh: Fresh) -> None:
    """``parts = {"it": model}``."""

    def hold(old: str, new: str) -> tuple[ast.stmt, ast.expr]:
        return assign(new, ast.Dict([ast.Constant("it")], [name(old)])), ast.Subscript(
            name(new), ast.Constant("it"), ast.Load()
        )

    _held(tree, fresh, hold)


@rewriting
def attributes_of_objects(tree: ast.Module, fresh: Fresh) -> None:
    """``parts = SimpleNamespace(it=model)``."""

    def hold(old: str, new: str) -> tuple[ast.stmt, ast.expr]:
        made = ast.Call(ast.Attribute(name("types"), "SimpleNamespace", ast.Load()), [], [ast.keyword("it", name(old))])
        return assign(new, made), ast.Attribute(name(new), "it", ast.Load())

    _import(tree, "types")
    _held(tree, fresh, hold)


@rewriting
def fields_of_a_dataclass(tree: ast.Module, fresh: Fresh) -> None:
    """``parts = Parts(model)`` with ``@dataclass class Parts``."""
    kind = fresh("Parts")

    def hold(old: str, new: str) -> tuple[ast.stmt, ast.expr]:
        return assign(new, ast.Call(name(kind), [name(old)], [])), ast.Attribute(name(new), "it", ast.Load())

    _import(tree, "dataclasses")
    _at_head(tree, ast.parse(f"@dataclasses.dataclass\nclass {kind}:\n    it: object\n").body)
    _held(tree, fresh, hold)


@rewriting
def tuples_and_back(tree: ast.Module, fresh: Fresh) -> None:
    """``pair = (model, 0)``."""

    def hold(old: str, new: str) -> tuple[ast.stmt, ast.expr]:
        return assign(new, ast.Tuple([name(old), ast.Constant(0)], ast.Load())), ast.Subscript(
            name(new), ast.Constant(0), ast.Load()
        )

    _held(tree, fresh, hold)


# -- expressions -----------------------------------------------------------------------------------------------------


def _is_simple(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Constant) or (isinstance(node, ast.Attribute) and _is_simple(node.value))


@rewriting
def temporaries(tree: ast.Module, fresh: Fresh) -> None:
    """``f(g(x))`` is ``t = g(x)`` and ``f(t)``."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.Assign | ast.Expr | ast.Return) or not isinstance(statement.value, ast.Call):
            return None
        call = statement.value
        if (
            not _is_simple(call.func)
            or any(isinstance(one, ast.Starred) for one in call.args)
            or any(not one.arg for one in call.keywords)
        ):
            return None
        made: list[ast.stmt] = []

        def named(value: ast.expr) -> ast.expr:
            if isinstance(value, ast.Name | ast.Constant):
                return value
            new = fresh("lemon")
            made.append(assign(new, value))
            return name(new)

        call.args = [named(one) for one in call.args]
        for keyword in call.keywords:
            keyword.value = named(keyword.value)
        return [*made, statement] if made else None

    _in_functions(tree, change)


@rewriting
def stars(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``f(x, k=y)`` is ``f(*(x,), **{"k": y})``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and all(one.arg for one in node.keywords):
            if any(isinstance(one, ast.Starred) for one in node.args):
                continue
            if node.args:
                node.args = [ast.Starred(ast.Tuple(node.args, ast.Load()), ast.Load())]
            if node.keywords:
                given = ast.Dict([ast.Constant(one.arg) for one in node.keywords], [one.value for one in node.keywords])
                node.keywords = [ast.keyword(None, given)]


@rewriting
def keywords_by_name(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """Arguments of the module's own functions are given by name."""
    known = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            args = known[node.func.id].args
            if args.posonlyargs or args.vararg or any(isinstance(one, ast.Starred) for one in node.args):
                continue
            node.keywords = [
                *(ast.keyword(one.arg, value) for one, value in zip(args.args, node.args, strict=False)),
                *node.keywords,
            ]
            node.args = []


@rewriting
def partials(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``f(x)`` of the module's own functions is ``functools.partial(f, x)()``."""
    known = {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}
    found = False
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            node.func = ast.Call(
                ast.Attribute(name("functools"), "partial", ast.Load()), [node.func, *node.args], node.keywords
            )
            node.args, node.keywords = [], []
            found = True
    if found:
        _import(tree, "functools")


@rewriting
def methods_by_getattr(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``x.f()`` is ``getattr(x, "f")()``, other than of modules."""
    modules = _modules(tree)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not _is_module(node.func.value, modules)
        ):
            if isinstance(node.func.value, ast.Call):  # super().f()
                continue
            node.func = ast.Call(name("getattr"), [node.func.value, ast.Constant(node.func.attr)], [])


@rewriting
def bound_methods(tree: ast.Module, fresh: Fresh) -> None:
    """``x.f()`` as a statement is ``do = x.f`` and ``do()``."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name()) as method) as call):
                new = fresh("peach")
                call.func = name(new)
                return [assign(new, method), statement]
        return None

    _in_functions(tree, change)


@rewriting
def walrus(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``x = y`` is ``(x := y)``."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        match statement:
            case ast.Assign(targets=[ast.Name() as target], value=value) if not isinstance(
                value, ast.Yield | ast.YieldFrom | ast.Await
            ):
                return [ast.Expr(ast.NamedExpr(target, value))]
        return None

    _in_functions(tree, change)


@rewriting
def comprehensions_as_loops(tree: ast.Module, fresh: Fresh) -> None:
    """``x = [f(y) for y in z]`` is a loop that appends."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.ListComp(elt=elt, generators=[generator])) if (
                not generator.is_async
            ):
                inner = {one.id for one in ast.walk(generator.target) if isinstance(one, ast.Name)}
                names: dict[str, str] = {one: fresh("grape") for one in inner}
                for node in ast.walk(ast.Tuple([elt, generator.target, *generator.ifs], ast.Load())):
                    if isinstance(node, ast.Name) and node.id in names:
                        node.id = names[node.id]
                new = fresh("list")
                body: list[ast.stmt] = [ast.Expr(ast.Call(ast.Attribute(name(new), "append", ast.Load()), [elt], []))]
                for test in reversed(generator.ifs):
                    body = [ast.If(test, body, [])]
                loop = ast.For(generator.target, generator.iter, body, [])
                return [assign(new, ast.List([], ast.Load())), loop, assign(target, name(new))]
        return None

    _in_functions(tree, change)


# -- conditions ------------------------------------------------------------------------------------------------------


@rewriting
def turned_conditions(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``if c: A else: B`` is ``if not c: B else: A``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and not _is_main(node):
            node.test, node.body, node.orelse = negated(node.test), node.orelse or [ast.Pass()], node.body


@rewriting
def named_conditions(tree: ast.Module, fresh: Fresh) -> None:
    """``if c:`` is ``flag = c`` and ``if flag:``."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        if isinstance(statement, ast.If) and not isinstance(statement.test, ast.Name | ast.Constant):
            new = fresh("plum")
            test, statement.test = statement.test, name(new)
            return [assign(new, test), statement]
        return None

    _in_functions(tree, change)


@rewriting
def nested_conditions(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``if a and b:`` without an else is ``if a:`` and ``if b:``."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.If)
            and not node.orelse
            and isinstance(node.test, ast.BoolOp)
            and isinstance(node.test.op, ast.And)
        ):
            first, *others = node.test.values
            for test in reversed(others):
                node.body = [ast.If(test, node.body, [])]
            node.test = first


@rewriting
def conditional_expressions_as_statements(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``x = a if c else b`` is an ``if`` statement."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        match statement:
            case ast.Assign(targets=[ast.Name()] as targets, value=ast.IfExp(test=test, body=body, orelse=other)):
                return [ast.If(test, [ast.Assign(targets, body)], [ast.Assign(deepcopy(targets), other)])]
        return None

    _in_functions(tree, change)


@rewriting
def early_returns(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """A function or a loop that ends with ``if c:`` leaves early instead."""
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.For | ast.While) and len(node.body) > 1:
            last = node.body[-1]
            if isinstance(last, ast.If) and not last.orelse:
                way: ast.stmt = ast.Return() if isinstance(node, ast.FunctionDef) else ast.Continue()
                node.body[-1:] = [ast.If(negated(last.test), [way], []), *last.body]


@rewriting
def dead_code(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """Backwards and steps that never run stand beside the real ones."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="step" | "backward" | "zero_grad"))):
                test = ast.BoolOp(ast.And(), [ast.Constant(value=False), name("print")])
                return [ast.If(test, [deepcopy(statement)], []), statement]
        return None

    _in_functions(tree, change)


# -- statements ------------------------------------------------------------------------------------------------------


@rewriting
def loops_by_hand(tree: ast.Module, fresh: Fresh) -> None:
    """``for x in y:`` is ``while True:`` over ``next``."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.For) or statement.orelse:
            return None
        new = fresh("turns")
        step = ast.Try(
            [ast.Assign([statement.target], ast.Call(name("next"), [name(new)], []))],
            [ast.ExceptHandler(name("StopIteration"), None, [ast.Break()])],
            [],
            [],
        )
        loop = ast.While(ast.Constant(value=True), [step, *statement.body], [])
        return [assign(new, ast.Call(name("iter"), [statement.iter], [])), loop]

    _in_functions(tree, change)


@rewriting
def while_with_a_counter(tree: ast.Module, fresh: Fresh) -> None:
    """``for x in range(n):`` without ``continue`` is ``while`` with a counter."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        match statement:
            case ast.For(
                target=ast.Name() as target, iter=ast.Call(func=ast.Name(id="range"), args=args, keywords=[]), orelse=[]
            ):
                if len(args) > 2 or any(isinstance(one, ast.Starred) for one in args) or _continues(statement):
                    return None
                start, stop = (ast.Constant(0), args[0]) if len(args) == 1 else args
                count, end = fresh("count"), fresh("end")
                more = ast.AugAssign(ast.Name(count, ast.Store()), ast.Add(), ast.Constant(1))
                body: list[ast.stmt] = [ast.Assign([target], name(count)), *statement.body, more]
                loop = ast.While(ast.Compare(name(count), [ast.Lt()], [name(end)]), body, [])
                return [assign(count, start), assign(end, stop), loop]
        return None

    _in_functions(tree, change)


@rewriting
def managers_by_hand(tree: ast.Module, fresh: Fresh) -> None:
    """``with m:`` is ``m.__enter__()`` and ``m.__exit__()`` in a ``finally``."""

    def change(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, ast.With) or len(statement.items) != 1:
            return None
        item, new = statement.items[0], fresh("manager")
        enter: ast.expr = ast.Call(ast.Attribute(name(new), "__enter__", ast.Load()), [], [])
        entered: ast.stmt = ast.Expr(enter) if item.optional_vars is None else ast.Assign([item.optional_vars], enter)
        nothing: list[ast.expr] = [ast.Constant(None), ast.Constant(None), ast.Constant(None)]
        left = ast.Expr(ast.Call(ast.Attribute(name(new), "__exit__", ast.Load()), nothing, []))
        return [assign(new, item.context_expr), entered, ast.Try(statement.body, [], [], [left])]

    _in_functions(tree, change)


@rewriting
def managers_on_a_stack(tree: ast.Module, fresh: Fresh) -> None:
    """``with m:`` is ``with ExitStack() as stack: stack.enter_context(m)``."""
    found = False
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            found = True
            new = fresh("stack")
            made: list[ast.stmt] = []
            for item in node.items:
                enter: ast.expr = ast.Call(
                    ast.Attribute(name(new), "enter_context", ast.Load()), [item.context_expr], []
                )
                made.append(ast.Expr(enter) if item.optional_vars is None else ast.Assign([item.optional_vars], enter))
            stack = ast.Call(ast.Attribute(name("contextlib"), "ExitStack", ast.Load()), [], [])
            node.items = [ast.withitem(stack, ast.Name(new, ast.Store()))]
            node.body = [*made, *node.body]
    if found:
        _import(tree, "contextlib")


@rewriting
def bodies_in_try(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """Bodies of functions stand in ``try … finally``."""
    for function in functions(tree):
        if len(function.body) > 1 and not isinstance(function.body[0], ast.Global | ast.Nonlocal):
            function.body = [ast.Try(function.body, [], [], [ast.Pass()])]


# -- functions -------------------------------------------------------------------------------------------------------


def _runs(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[ast.stmt], int, int]]:
    """Runs of calls as statements in functions: the function, the block, from where, up to where."""
    for function in list(functions(tree)):
        if any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in ast.walk(function)):
            continue
        own = set(own_nodes(function))
        for block in blocks(function):
            if block[0] not in own:
                continue
            index = len(block)
            while index:
                end = index
                while index and isinstance(block[index - 1], ast.Expr) and _is_movable(block[index - 1]):
                    index -= 1
                if index < end:
                    yield function, block, index, end
                index = min(index, end - 1)


def _is_movable(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and not any(
            isinstance(node, ast.NamedExpr | ast.Await | ast.Yield)
            or (isinstance(node, ast.Name) and node.id in {"super", "locals", "exec", "__class__"})
            for node in ast.walk(statement)
        )
    )


@rewriting
def statements_in_closures(tree: ast.Module, fresh: Fresh) -> None:
    """Calls are made by a function inside of the function."""
    for _, block, start, end in list(_runs(tree)):
        new = fresh("inner")
        made = ast.parse(f"def {new}():\n    pass\n{new}()").body
        made[0].body = block[start:end]  # type: ignore[attr-defined]
        block[start:end] = made


def _moved(
    tree: ast.Module, fresh: Fresh, *, also_of_module: bool
) -> Iterator[tuple[ast.FunctionDef, list[ast.stmt], int, int]]:
    """Functions made of runs of calls with what they read as parameters, and the places to call them from."""
    top = {*assigned(tree)}
    for function, block, start, end in list(_runs(tree)):
        outer = {
            one
            for other in functions(tree)
            if function in set(ast.walk(other))
            for one in (*assigned(other), *parameters(other))
        }
        if any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(function)):
            continue
        bound = {
            one.id
            for statement in block[start:end]
            for one in ast.walk(statement)
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        } | {
            one
            for statement in block[start:end]
            for node in ast.walk(statement)
            if isinstance(node, ast.Lambda)
            for one in parameters(node)
        }
        needed = sorted(
            one
            for one in loaded(block[start:end]) - bound
            if one in outer or (also_of_module and one in top and not is_builtin(one))
        )
        if bound & outer:
            continue
        made = ast.parse(f"def {fresh('moved')}({', '.join(needed)}):\n    pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.body = block[start:end]
        yield made, block, start, end


def _call(function: ast.FunctionDef, of: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(of, [name(one.arg) for one in function.args.args], []))


@rewriting
def statements_in_helpers(tree: ast.Module, fresh: Fresh) -> None:
    """Calls are made by functions of the module that get what they need."""
    made: list[ast.stmt] = []
    for function, block, start, end in _moved(tree, fresh, also_of_module=False):
        block[start:end] = [_call(function, name(function.name))]
        made.append(function)
    _at_head(tree, made)


@rewriting
def statements_in_methods(tree: ast.Module, fresh: Fresh) -> None:
    """Calls are made by methods of an object that get what they need."""
    kind = fresh("Moved")
    methods: list[ast.stmt] = []
    for function, block, start, end in _moved(tree, fresh, also_of_module=False):
        block[start:end] = [_call(function, ast.Attribute(ast.Call(name(kind), [], []), function.name, ast.Load()))]
        function.args.args.insert(0, ast.arg(fresh("self")))
        methods.append(function)
    if methods:
        made = ast.parse(f"class {kind}:\n    pass").body[0]
        assert isinstance(made, ast.ClassDef)
        made.body = methods
        _at_head(tree, [made])


@rewriting
def statements_in_another_module(tree: ast.Module, fresh: Fresh) -> Files | None:
    """Calls are made by functions of another module that get all they need."""
    made: list[ast.stmt] = []
    for function, block, start, end in _moved(tree, fresh, also_of_module=True):
        block[start:end] = [_call(function, ast.Attribute(name("moved_parts"), function.name, ast.Load()))]
        made.append(function)
    if not made:
        return None
    _import(tree, "moved_parts")
    return {"moved_parts.py": ast.unparse(ast.fix_missing_locations(ast.Module(made, [])))}


@rewriting
def functions_as_objects(tree: ast.Module, fresh: Fresh) -> None:
    """Functions of the module are objects that can be called."""
    made: list[ast.stmt] = []
    for one in tree.body:
        made.append(one)
        if isinstance(one, ast.FunctionDef) and not one.decorator_list:
            kind = ast.parse(f"class {fresh('Callable')}:\n    pass\n{one.name} = {fresh.taken and 'x'}()").body
            holder, value = kind
            assert isinstance(holder, ast.ClassDef)
            assert isinstance(value, ast.Assign)
            value.value = ast.Call(name(holder.name), [], [])
            method = deepcopy(one)
            method.name = "__call__"
            (method.args.posonlyargs or method.args.args).insert(0, ast.arg(fresh("self")))
            holder.body = [method]
            made[-1:] = [holder, value]
    tree.body = made


@rewriting
def decorated_functions(tree: ast.Module, fresh: Fresh) -> None:
    """Functions of the module have a decorator that hands everything on."""
    new = fresh("decorator")
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    for one in found:
        one.decorator_list.append(name(new))
    if found:
        _import(tree, "functools")
        text = (
            f"def {new}(function):\n    @functools.wraps(function)\n"
            "    def wrapper(*args, **kwargs):\n        return function(*args, **kwargs)\n"
            "    return wrapper"
        )
        _at_head(tree, ast.parse(text).body)


@rewriting
def arguments_as_a_namespace(tree: ast.Module, fresh: Fresh) -> None:  # noqa: ARG001
    """``args = parser.parse_args()`` becomes a namespace of its own."""
    found = False
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == "parse_args"
        ):
            found = True
            every = ast.Call(name("vars"), [node.value], [])
            node.value = ast.Call(
                ast.Attribute(name("types"), "SimpleNamespace", ast.Load()), [], [ast.keyword(None, every)]
            )
    if found:
        _import(tree, "types")


# -- imports ---------------------------------------------------------------------------------------------------------


@rewriting
def imports_of_whole_modules(tree: ast.Module, fresh: Fresh) -> None:
    """``from torch.nn.parallel import DistributedDataParallel as DDP`` is ``import torch.nn.parallel``."""
    names: dict[str, ast.expr] = {}
    made: list[ast.stmt] = []
    for one in tree.body:
        kept = True
        if isinstance(one, ast.ImportFrom) and not one.level and (one.module or "").partition(".")[0] == "torch":
            bound = [alias.asname or alias.name for alias in one.names]
            if all(
                assigned(tree)[text] == 1 and not any(rebinds(other, text) for other in tree.body) for text in bound
            ):
                for alias in one.names:
                    names[alias.asname or alias.name] = ast.parse(f"{one.module}.{alias.name}", mode="eval").body
                made.extend(
                    ast.parse("import torch\n" + (f"import {one.module}" if _is_known_module(one.module) else "")).body
                )
                kept = False
        if kept:
            made.append(one)
    tree.body = [Renamed(names).visit(one) for one in made] if names else made
    if "torch" in names:
        raise AssertionError(fresh("torch"))


@rewriting
def imports_with_other_names(tree: ast.Module, fresh: Fresh) -> None:
    """Modules and what is imported get names that say nothing."""
    names: dict[str, ast.expr] = {}
    for one in tree.body:
        if isinstance(one, ast.Import | ast.ImportFrom) and not (
            isinstance(one, ast.ImportFrom) and one.module == "__future__"
        ):
            for alias in one.names:
                bound = alias.asname or alias.name
                if (
                    alias.name == "*"
                    or "." in bound
                    or assigned(tree).get(bound) != 1
                    or any(rebinds(other, bound) for other in tree.body)
                ):
                    continue
                alias.asname = fresh("melon")
                names[bound] = name(alias.asname)
    tree.body = [Renamed(names).visit(one) for one in tree.body]


# -- help ------------------------------------------------------------------------------------------------------------


def _in_functions(tree: ast.Module, change: Callable[[ast.stmt], list[ast.stmt] | None]) -> None:
    """Change the statements of functions; those of the module and of classes are parts of an interface."""
    for function in [
        one for one in functions(tree) if not any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(one))
    ]:
        if not any(function in set(ast.walk(other)) for other in functions(tree) if other is not function):
            each_statement(function, change)


def _import(tree: ast.Module, module: str) -> None:
    _at_head(tree, [ast.Import([ast.alias(module)])])


def _at_head(tree: ast.Module, made: list[ast.stmt]) -> None:
    """Put statements behind the docstring and the imports of the future."""
    index = 0
    for index, one in enumerate(tree.body):  # noqa: B007
        is_text = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        if not is_text and not (isinstance(one, ast.ImportFrom) and one.module == "__future__"):
            break
    if made and all(isinstance(one, ast.Import) for one in made):
        tree.body[index:index] = made
        return
    last = max(
        (place for place, one in enumerate(tree.body) if isinstance(one, ast.Import | ast.ImportFrom)),
        default=index - 1,
    )
    tree.body[last + 1 : last + 1] = made


def _modules(tree: ast.Module) -> set[str]:
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _is_module(node: ast.expr, modules: set[str]) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in modules


def _is_known_module(text: str | None) -> bool:
    return text in {
        "torch.nn.parallel",
        "torch.utils.data",
        "torch.utils.data.distributed",
        "torch.optim.lr_scheduler",
        "torch.nn",
        "torch.optim",
    }


def _is_main(node: ast.If) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "__name__" for one in ast.walk(node.test))


def _continues(loop: ast.For) -> bool:
    """Whether a loop has a ``continue`` of its own."""
    todo: list[ast.AST] = list(loop.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Continue):
            return True
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))
    return False
