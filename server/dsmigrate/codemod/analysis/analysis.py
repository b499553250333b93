"""An analysis: the events of a script's run, and the questions about them that several idioms ask. Each has one owner here."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from dsmigrate.codemod.analysis.by_use import optimizers_by_use
from dsmigrate.codemod.analysis.classes import is_closed
from dsmigrate.codemod.analysis.conditions import FALSE, Condition, atoms_of, both
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.roles import inside_of, is_known, is_module, role_of
from dsmigrate.codemod.analysis.run import Run
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    UNBOUND,
    Choice,
    Const,
    Expr,
    Kind,
    Lib,
    Obj,
    Tensor,
    Value,
    each,
    imported,
    option_of,
    owner,
)
from dsmigrate.codemod.program.project import Project
from dsmigrate.files.syntax import with_deep_stack


@dataclass(eq=False)
class Analysis:
    """What a run of a script shows. ``events`` are all events in their order."""

    run: Run
    project: Project
    events: tuple[Event, ...] = field(default=())

    @property
    def root(self) -> Block:
        """The block that holds all that happens in the run."""
        return self.run.root

    @cached_property
    def by_kind(self) -> Mapping[Happening, tuple[Event, ...]]:
        """The events of each kind, in order."""
        found: dict[Happening, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.kind].append(event)
        return {kind: tuple(events) for kind, events in found.items()}

    @cached_property
    def parsers(self) -> tuple[Obj, ...]:
        """The parsers that read the command line, with those whose options they take over; all, where none is seen to."""
        made = list(self.run.made.values())
        every = [obj for obj in made if "options" in obj.data]
        read = [obj.data["parser"] for obj in made if obj.kind is Kind.NAMESPACE and "parser" in obj.data]
        for parser in read:  # which grows
            parents = parser.data.get("arguments", {"named": {}})["named"].get("parents", NONE)
            more = [*(self.run.exact_items(parents) or ()), *(one for one in every if one.data.get("under") is parser)]
            read += [one for one in more if isinstance(one, Obj) and one not in read]
        return tuple(obj for obj in every if obj in read) or tuple(every)

    def of(self, *kinds: Happening) -> Iterator[Event]:
        """The events of some kinds, in order."""
        if len(kinds) == 1:
            yield from self.by_kind.get(kinds[0], ())
        else:
            yield from (event for event in self.events if event.kind in kinds)


def analysed(project: Project) -> Analysis:
    """Run the entry script of a project abstractly."""

    def work() -> Analysis:
        run = Run(project)
        root = run.main()
        found = optimizers_by_use(run)
        if found:
            run = Run(project, found)
            root = run.main()
        _adopt(root)
        happens = (one for one in root.events() if one.condition is not FALSE or one.kind is Happening.WRAP)
        return Analysis(run, project, tuple(happens))  # a run that comes by a wrap has an engine later

    return with_deep_stack(work)


def _adopt(root: Block) -> None:
    """Number the events in the order of the tree, and let every block know what holds it."""
    number = 0
    pending: list[Block | Event] = [root]
    while pending:
        item = pending.pop()
        if isinstance(item, Event):
            number += 1
            item.number = number
            continue
        for inner in item.items:
            if isinstance(inner, Block):
                inner.up = item
            else:
                inner.block = item
        pending.extend(reversed(item.items))


# -- things --------------------------------------------------------------------------------------------------------


def things(value: Value) -> Iterator[Value]:
    """The objects and symbols that a value may be."""
    yield from (one for one in each(value) if isinstance(one, Obj | Expr))


def raw_models(run: Run, value: Value) -> set[Value]:
    """The models in what may be wrapped."""
    found: set[Value] = set()
    for one in things(value):
        inner = inside_of(run, one) if isinstance(one, Obj) else one
        found.update(things(inner))
    return found


def wrappers(value: Value) -> set[Obj]:
    """The wrappers (DistributedDataParallel) that a value may be."""
    return {one for one in each(value) if isinstance(one, Obj) and role_of(one) is Role.WRAPPER}


def modules_of(run: Run, model: Value) -> set[Value]:
    """A model and every module that it holds; for a part that cannot be told the whole that it is of."""
    found: set[Value] = set()
    pending = [model]
    while pending:
        one = pending.pop()
        if one in found:
            continue
        found.add(one)
        if isinstance(one, Expr) and one.op == "part":
            pending.append(owner(one))
        holder = one if isinstance(one, Obj) else run.shadows.get(one) if isinstance(one, Expr) else None
        for value in () if holder is None else holder.own.values():
            pending += [inner for inner in things(value) if _may_be_module(run, inner)]
    return found


def _may_be_module(run: Run, thing: Value) -> bool:
    """Whether a thing is a module, or of a class with a base that is not read."""
    if isinstance(thing, Obj) and thing.kind is Kind.INSTANCE and role_of(thing) is None:
        return not is_closed(thing)
    return role_of(thing) is Role.MODEL or (isinstance(thing, Expr) and is_known(run, thing))


def parameters_of(run: Run, value: Value) -> set[Value]:
    """The modules whose parameters may be in a value, of unread parts the whole, and those that an unread call made it of."""
    found: set[Value] = set()
    seen: set[Value] = set()
    pending = list(run.things_in(value))
    while pending:
        one = pending.pop()
        if isinstance(one, Tensor) and one.of is not None:
            found.add(owner(one.of))
        elif isinstance(one, Expr) and one not in seen:
            seen.add(one)
            for held in run.held.get(one, ()):
                if is_module(run, held):
                    found.add(owner(inside_of(run, held)) if isinstance(held, Obj) else owner(held))
                else:
                    pending.append(held)
    return found.union(*(modules_of(run, one) for one in found))


# -- where -----------------------------------------------------------------------------------------------------------


def dividing(event: Event | Block, parts: Callable[[Condition], bool] = attrgetter("varies")) -> Block | None:
    """The outermost block around an event that only some ranks enter; None where all ranks get there.

    ``parts`` says whether ranks may disagree on a test.
    """
    block = event.block if isinstance(event, Event) else event
    found = None
    for one in block.around():
        if parts(one.test) and not one.is_only_way:  # a rank that stops leaves none behind to wait for
            found = one
    return found


def may_part(
    analysis: Analysis, condition: Condition, parts: Callable[[Condition], bool] = attrgetter("varies")
) -> bool:
    """Whether ranks disagree on a condition, or it asks something unread that is given nothing: ``if is_main_process():``.

    ``parts`` says whether ranks may disagree on what is read.
    """
    return parts(condition) or any(_asks_process(analysis, atom) for atom in atoms_of(condition))


def _asks_process(analysis: Analysis, atom: Expr) -> bool:
    """Whether a test looks at what an unread call without arguments gives, or at an option that no parser has."""
    is_compared = atom.op in {"==", "<", "<="} and isinstance(atom.args[1], Const)
    match atom.args[0] if is_compared or atom.op == "true" else atom:
        case Expr(op="unknown", args=(ast.Call(args=[], keywords=[]), *_)):
            return True
        case Expr(op="arg", args=(str(name), *_)):
            known = analysis.parsers
            return bool(known) and all(name not in one.data["options"] for one in known)
    return False


def loops_around(event: Event) -> list[Block]:
    """The loops that an event is in, from the inside out, across calls."""
    return [block for block in event.block.around() if block.kind is BlockKind.LOOP]


def regions_around(event: Event, name: str | frozenset[str]) -> list[Block]:
    """The regions of a library's manager that an event is in, from the inside out."""
    names = frozenset((name,)) if isinstance(name, str) else name
    return [
        block
        for block in event.block.around()
        if block.kind is BlockKind.WITH
        and block.label is not None
        and any(isinstance(one, Obj) and one.made_by in names for one in each(block.label))
    ]


def nearest_common(events: Iterable[Event]) -> Block:
    """The innermost block that holds all of some events."""
    lines = [list(event.block.around())[::-1] for event in events]
    common = lines[0][0]
    for column in zip(*lines, strict=False):
        if any(block is not column[0] for block in column):
            break
        common = column[0]
    return common


def exclusive(one: Event, other: Event) -> bool:
    """Whether no run has both events: their conditions say so, or they stand in two arms of a branch."""
    if both(one.condition, other.condition) is FALSE:
        return True
    common = nearest_common([one, other])
    first, second = (
        next((block for block in event.block.around() if block.up is common), None) for event in (one, other)
    )
    return (
        first is not None
        and second is not None
        and first is not second
        and first.kind is BlockKind.BRANCH
        and second.kind is BlockKind.BRANCH
        and first.node is second.node
    )


def under(block: Block, outer: Block) -> bool:
    """Whether a block is in another one, or that one."""
    return any(one is outer for one in block.around())


def within(event: Event, outer: Block) -> Condition:
    """The condition of an event, seen from a block around it."""
    tests: list[Condition] = []
    for block in event.block.around():
        if block is outer:
            break
        tests.append(block.test)
    return both(*tests)


# -- names -----------------------------------------------------------------------------------------------------------


def paths_to(names: tuple[Mapping[Any, Value], ...], wanted: set[Value] | set[Obj], *, depth: int = 2) -> list[str]:
    """How a place with some names can say a thing: by a name, or by attributes of what a name holds.

    The shortest comes first, but for a name that may also be unbound or another thing there.
    """
    found: list[str] = []
    loose: set[str] = set()
    hidden: set[str] = set()
    for scope in names:
        for name, value in scope.items():
            if not isinstance(name, str) or name in hidden or not name.isidentifier():
                continue
            if any(one in wanted for one in each(value)):
                found.append(name)
                if isinstance(value, Choice) and any(option not in wanted for _, option in value.options):
                    loose.add(name)
            elif depth:
                inside = [f"{name}.{inner}" for inner in _attributes(value, wanted, depth)]
                found += inside
                if isinstance(value, Choice):  # None, for one, which has no attributes
                    loose.update(inside)
        hidden.update(name for name in scope if isinstance(name, str))
    return sorted(dict.fromkeys(found), key=lambda path: (path in loose, path.count(".")))


def _attributes(value: Value, wanted: set[Value] | set[Obj], depth: int) -> Iterator[str]:
    for one in each(value):
        if not isinstance(one, Obj) or one.kind not in {Kind.INSTANCE, Kind.NAMESPACE}:
            continue
        for name, inner in one.own.items():
            if not isinstance(name, str) or not name.isidentifier():
                continue
            if any(candidate in wanted for candidate in each(inner)):
                yield name
            elif depth > 1 and isinstance(inner, Obj) and inner.kind is Kind.INSTANCE and role_of(inner) is None:
                yield from (f"{name}.{more}" for more in _attributes(inner, wanted, depth - 1))


def values_at(run: Run, names: tuple[Mapping[str, Value], ...], expression: ast.expr) -> list[Value] | None:
    """What a name, or attributes of one, may be at a place; None for any other expression."""
    found = held_at(run, names, expression)
    return None if found is None else [one for value in found for one in each(value)]


def held_at(run: Run, names: tuple[Mapping[str, Value], ...], expression: ast.expr) -> list[Value] | None:
    """What a name, or an attribute of whatever its holder may be, holds at a place, with the ways on which it is nothing."""
    if isinstance(expression, ast.Name):
        scope = next((scope for scope in names if expression.id in scope), None)
        return None if scope is None else [scope[expression.id]]
    if not isinstance(expression, ast.Attribute):
        return None
    found: list[Value] = []
    for one in values_at(run, names, expression.value) or ():
        holder = one if isinstance(one, Obj) else run.shadows.get(one) if isinstance(one, Expr) else None
        if holder is not None and expression.attr in holder.own:
            found.append(holder.own[expression.attr])
    return found or None


def code_for(value: Value, names: tuple[Mapping[str, Value], ...]) -> str | None:
    """An expression that gives a value of plain data at a place with some names; None where there is none."""
    if isinstance(value, Const):
        if value.value in {float("inf"), float("-inf")}:
            return f'float("{value.value}")'
        text = repr(value.value)
        return f'"{text[1:-1]}"' if isinstance(value.value, str) and not set(text[1:-1]) & set("\\'\"") else text
    by_name = named(value, names)
    if by_name is not None:
        return by_name
    if not isinstance(value, Expr):
        return None
    match value.op, value.args:
        case "arg", (str(name), *_):
            return _argument(name, names)
        case ("+" | "-" | "*" | "/" | "//" | "%") as op, (left, right):
            parts = [code_for(left, names), code_for(right, names)]
            if None not in parts:
                return f"{_in_parentheses(left, parts[0])} {op} {_in_parentheses(right, parts[1])}"
        case ("int" | "float" | "max" | "min" | "bool" | "str") as op, args:
            parts = [code_for(arg, names) for arg in args]
            if None not in parts:
                return f"{op}({', '.join(map(str, parts))})"
        case "len", (Obj(kind=Kind.LIBRARY) as of,):
            inner = named(of, names)
            return f"len({inner})" if inner else None
        case "cuda", _:
            return _call_of("torch.cuda", "is_available", names)
        case "bf16", _:
            return _call_of("torch.cuda", "is_bf16_supported", names)
        case "getattr", (Lib(name=of), name):
            library, inner = library_said(of, names), code_for(name, names)
            return f"getattr({library}, {inner})" if library and inner else None
        case "world_size", _:
            return _call_of("torch.distributed", "get_world_size", names)
        case "field", (base, str(name)):
            inner = code_for(base, names) if isinstance(base, Expr | Obj) else None
            return f"{inner}.{name}" if inner else None
        case "true", (Lib(name=of),):
            return library_said(of, names)
        case "hasattr", (Expr() | Obj() as base, str(name)):
            inner = code_for(base, names)
            return f'hasattr({inner}, "{name}")' if inner else None
        case "item", (Expr() | Lib() | Obj() as base, (str() | int() | Const(value=str() | int())) as key):
            inner = library_said(base.name, names) if isinstance(base, Lib) else code_for(base, names)
            return f"{inner}[{code_for(key if isinstance(key, Const) else Const(key), names)}]" if inner else None
        case "method", (Expr() as base, "get", *given):
            parts = [code_for(base, names), *(code_for(one, names) for one in given)]
            return f"{parts[0]}.get({', '.join(map(str, parts[1:]))})" if None not in parts else None
    return None


def _in_parentheses(value: Value, code: str | None) -> str:
    return (
        f"({code})"
        if isinstance(value, Expr) and value.op in {"+", "-", "*", "/", "//", "%"} and code and " " in code
        else str(code)
    )


def named(value: Value, names: tuple[Mapping[Any, Value], ...]) -> str | None:
    """A name or an attribute of one that holds a value at a place; None where there is none."""
    return name_of(lambda held: held == value, names)


def name_of(is_it: Callable[[Value], bool], names: tuple[Mapping[Any, Value], ...]) -> str | None:
    """A name or an attribute of one that holds what is asked for at a place; None where there is none."""
    hidden: set[str] = set()
    for scope in names:
        own = {name: imported(held) for name, held in scope.items() if isinstance(name, str) and name not in hidden}
        for name, held in own.items():
            if not isinstance(held, Const) and is_it(held) and name.isidentifier():
                return name
        for name, held in own.items():
            for one in each(held):
                way = _way_in(one, is_it, frozenset())
                if way is not None:
                    return f"{name}{way}"
        hidden.update(own)
    return None


def _way_in(of: Value, is_it: Callable[[Value], bool], seen: frozenset[Obj]) -> str | None:
    """The attributes that lead from a thing to a value, in trees of settings over several."""
    if (
        not isinstance(of, Obj)
        or of.kind not in {Kind.NAMESPACE, Kind.INSTANCE}
        or role_of(of) is not None
        or of in seen
    ):
        return None
    for name, inner in of.own.items():
        if isinstance(name, str) and name.isidentifier():
            if is_it(_now(of, name, inner)):
                return f".{name}"
            deeper = _way_in(inner, is_it, seen | {of}) if of.kind is Kind.NAMESPACE else None
            if deeper is not None:
                return f".{name}{deeper}"
    return None


def _now(of: Obj, attribute: str, inner: Value) -> Value:
    """What an attribute is: of an option that is overwritten on some ways only, what the command line said on the others."""
    if (
        of.kind is Kind.NAMESPACE
        and isinstance(inner, Choice)
        and any(option is UNBOUND for _, option in inner.options)
    ):
        return Choice(
            tuple(
                (condition, option_of(of, attribute) if option is UNBOUND else option)
                for condition, option in inner.options
            )
        )
    return inner


def _argument(name: str, names: tuple[Mapping[str, Value], ...]) -> str | None:
    """``args.name`` where the options are known by a name and still say what the command line said."""
    for scope in names:
        for holder, held in scope.items():
            for one in each(held):
                if isinstance(one, Obj) and one.kind is Kind.NAMESPACE and one.made_by == "argparse":
                    now = one.own.get(name)
                    if now is None or now == option_of(one, name):
                        return f"{holder}.{name}"
    return None


def _call_of(module: str, function: str, names: tuple[Mapping[str, Value], ...]) -> str | None:
    said = library_said(f"{module}.{function}", names)
    return None if said is None else f"{said}()"


def library_name(node: ast.expr, names: tuple[Mapping[str, Value], ...]) -> str | None:
    """The qualified name of something of a library, by the names of a place; None for anything else."""
    match node:
        case ast.Name():
            for scope in names:
                found = scope.get(node.id)
                if found is not None:
                    return found.name if isinstance(found, Lib) else None
        case ast.Attribute():
            base = library_name(node.value, names)
            return None if base is None else f"{base}.{node.attr}"
    return None


def library_said(full: str, names: tuple[Mapping[str, Value], ...]) -> str | None:
    """How something of a library is said at a place, by a name that it or one of the modules around it has there."""
    rest = ""
    while full:
        for scope in names:
            for name, value in scope.items():
                if value == Lib(full):
                    return f"{name}{rest}"
        full, _, last = full.rpartition(".")
        rest = f".{last}{rest}"
    return None


def default_of(analysis: Analysis, name: str) -> object:
    """The default of an option of the command line; None where there is none, or it is not written out."""
    for parser in analysis.parsers:
        option = parser.data["options"].get(name)
        if option is not None:
            default = option.get("default")
            if isinstance(default, Const):
                return default.value
            action = option.get("action")
            if isinstance(action, Const) and action.value == "store_true":
                return False
            if isinstance(action, Const) and action.value == "store_false":
                return True
    return None


def is_left_out(analysis: Analysis, name: str) -> bool:
    """Whether an option is None where it is not given."""
    option = next((parser.data["options"][name] for parser in analysis.parsers if name in parser.data["options"]), None)
    if (
        option is None
        or "action" in option
        or option.get("default", NONE) != NONE
        or option.get("required", FALSE_VALUE) != FALSE_VALUE
    ):
        return False
    return any(flag.startswith("-") for flag in option["flags"])


def static_value(analysis: Analysis, value: Value) -> object:
    """What a value is where no option of the command line is given; None where that is not known."""
    match value:
        case Const():
            return value.value
        case Expr(op="arg"):
            return default_of(analysis, value.args[0])
        case Expr(op="setting"):
            return static_value(analysis, value.args[1])
        case Expr(op="+" | "-" | "*" | "/" | "//" | "%" | "int" | "float" | "max" | "min"):
            parts = [static_value(analysis, arg) for arg in value.args]
            if any(not isinstance(part, int | float) or isinstance(part, bool) for part in parts):
                return None
            return _reckoned(value.op, parts)
        case Choice():
            from dsmigrate.codemod.analysis.code import holds_by_default

            likely = [
                (holds_by_default(analysis, condition), one) for condition, one in value.options if one is not UNBOUND
            ]
            certain = [one for holds, one in likely if holds] or [one for holds, one in likely if holds is None]
            options = [static_value(analysis, one) for one in certain]
            return next((one for one in options if one is not None), None)
    return None


def _reckoned(op: str, parts: list[object]) -> object:
    numbers = [part for part in parts if isinstance(part, int | float)]
    try:
        match op:
            case "+":
                return numbers[0] + numbers[1]
            case "-":
                return numbers[0] - numbers[1]
            case "*":
                return numbers[0] * numbers[1]
            case "/":
                return numbers[0] / numbers[1]
            case "//":
                return numbers[0] // numbers[1]
            case "%":
                return numbers[0] % numbers[1]
            case "int":
                return int(numbers[0])
            case "float":
                return float(numbers[0])
            case "max":
                return max(numbers)
            case "min":
                return min(numbers)
    except (ZeroDivisionError, OverflowError, ValueError, IndexError):
        return None
    return None


def implies(condition: Condition, other: Condition) -> bool:
    """Whether one condition holds only where another does."""
    from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Assumed, Several, decided, literals_of

    if other is TRUE or condition is other or condition is FALSE:
        return True
    if isinstance(other, Several) and other.all_of:
        return all(implies(condition, part) for part in other.parts)
    if isinstance(condition, Several):
        if not condition.all_of:
            return all(implies(part, other) for part in condition.parts)
        if other in condition.parts:
            return True
    if isinstance(other, Several) and any(implies(condition, part) for part in other.parts):
        return True
    assumed = Assumed({literal.atom: literal.holds for literal in literals_of(condition)})
    return decided(other, assumed) is True
