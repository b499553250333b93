"""What an expression of a script can be: a constant, a symbol, a thing with identity, a tensor, or one of several."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from dsmigrate.codemod.analysis.conditions import Condition
    from dsmigrate.codemod.program.module import Module


class Context:
    """The calls that lead to a place, from the entry on; equal ones are the same object."""

    __slots__ = ("_below", "depth", "node", "up")

    def __init__(self, up: Context | None, node: ast.AST | None) -> None:
        self.up = up
        self.node = node
        self.depth: int = 0 if up is None else up.depth + 1
        self._below: dict[ast.AST, Context] = {}

    def below(self, node: ast.AST) -> Context:
        """The calls that lead into a call from here."""
        found = self._below.get(node)
        if found is None:
            found = self._below[node] = Context(self, node)
        return found


class Interning(type):
    """Classes whose equal objects are one object, so that they are compared and looked up by identity."""

    _known: ClassVar[dict[type, dict[Any, Any]]] = {}

    def __call__(cls, *args: Any, **named: Any) -> Any:
        """The one object of these parts."""
        known = Interning._known.setdefault(cls, {})
        if not named and cls is not Const:
            found = known.get(args)
            if found is not None:
                return found
        made = super().__call__(*args, **named)
        made = known.setdefault(made.parts(), made)
        if not named and cls is not Const:
            known[args] = made
        return made

    @staticmethod
    def forget() -> None:
        """Let go of what is not plain: what is made from then on equals nothing that was made before."""
        for cls, known in Interning._known.items():
            if cls not in {Const, Lib}:
                known.clear()


class Interned(metaclass=Interning):
    """A value without identity: what it is made of says which it is."""

    __slots__ = ()

    def parts(self) -> tuple[Any, ...]:
        """What tells this value from others of its class."""
        names: tuple[str, ...] = self.__slots__
        return tuple(getattr(self, name) for name in names)


class Const(Interned):
    """A value that is written out, or worked out from such: a number, text, None, a type's name."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def parts(self) -> tuple[Any, ...]:
        """The type and the value, since equal values of two types are not the same."""
        kind = type(self.value)
        return (kind, repr(self.value) if kind in _MIXED else self.value)

    def __repr__(self) -> str:
        return f"Const({self.value!r})"


_MIXED = frozenset({tuple, frozenset, float})
"""Types whose values may be equal and yet not the same: ``(1,)`` and ``(True,)``, ``0.0`` and ``-0.0``."""


_DEEPEST = 24


def _is_of_launch(op: str, args: tuple[Any, ...]) -> bool:
    """Whether a rank is asked whether there is one, as by ``args.local_rank != -1``: all processes have one, or none has."""
    match op, args:
        case (("==" | "<" | "<="), (Expr(op="arg" | "env"), Const(value=int(number)))):
            return number < (op == "<")
        case (("<" | "<="), (Const(value=int(number)), Expr(op="arg" | "env"))):
            return number < (op == "<=")
    return False


class Expr(Interned):
    """Plain data that is known by what it comes from: an option, a rank, a loop's counter, what a call gives.

    ``op`` says how it is made of ``args``; equal ones stand for the same value wherever ``loops``, the loops in which
    it may be another one at each turn, are not left. ``varies``: each rank may have its own.
    """

    __slots__ = ("args", "depth", "loops", "op", "things", "varies")

    op: str
    args: tuple[Any, ...]
    varies: bool
    loops: frozenset[ast.AST]
    things: frozenset[Obj]
    depth: int

    def __init__(self, op: str, *args: Any, varies: bool = False, loops: frozenset[ast.AST] = frozenset()) -> None:
        depth = 0
        things: frozenset[Obj] = frozenset()
        for arg in args:
            if isinstance(arg, Expr):
                varies = varies or arg.varies
                depth = max(depth, arg.depth)
                loops |= arg.loops
                things |= arg.things
            elif isinstance(arg, Obj):
                things |= {arg}
            elif isinstance(arg, Tensor):
                varies = varies or arg.varies
            elif isinstance(arg, Tup):
                varies = varies or any(may_vary(one) for one in arg.items)
        if depth > _DEEPEST:  # a number that is worked out so long is known by nothing but its making
            op, args, depth = "worked out", (hash((op, args)),), 0
        self.op = op
        self.args = args
        self.varies = varies and not _is_of_launch(op, args)
        self.loops = loops
        self.things = things
        self.depth = depth + 1

    def parts(self) -> tuple[Any, ...]:
        """What it is made of and how, without what follows from that."""
        return (self.op, self.args, self.varies, self.loops)

    def __repr__(self) -> str:
        return f"<{show(self)}>"


@dataclass(frozen=True, slots=True, eq=False)
class Tup(Interned):
    """A tuple."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lib(Interned):
    """Something of a library, by its qualified name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Member(Interned):
    """A member of a thing that no source defines: a method of a library's object, called or handed on."""

    of: Value
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Bound(Interned):
    """A function of the script with the instance or class that it belongs to."""

    function: Obj
    instance: Value


@dataclass(frozen=True, slots=True, eq=False)
class Super(Interned):
    """What ``super()`` gives in a method of ``cls``."""

    cls: Obj
    instance: Value


@dataclass(frozen=True, slots=True, eq=False)
class Lazy(Interned):
    """A name of a module of the project that has not been asked for yet."""

    module: Obj
    name: str


class TensorKind(enum.Enum):
    """What a tensor stands for in the training."""

    DATA = "data"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    GRADIENT = "gradient"
    WEIGHT = "weight"
    """What a state_dict holds: a parameter's or a buffer's content."""
    EACH_NORM = "norm of each"
    """The norms of single gradients, one or several of them."""
    NORM = "norm"
    """A norm over the gradients of several parameters."""


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Interned):
    """A tensor, or what a library makes of one.

    ``of``: whose parameter, buffer or gradient; ``forwards``: the nodes of the forwards of tracked models that it
    comes from; ``scaler``: the gradient scaler whose scale it carries; ``detached``: without a graph; ``varies``: each
    rank has its own, as it has its own data; ``scalar``: it is known to have no dimensions; ``turned``: it may not be
    contiguous. ``picked``: of which parameters it is, as a condition on them; None: of all. ``power``: to which power a
    norm is raised. ``given``: the calls that gave it as it is, or up to a factor. ``factors``: by what it was multiplied
    since its forwards, as text. ``batch``: the keys by which it was taken from what a loader gives, while it stays where
    that is; None otherwise.
    """

    kind: TensorKind = TensorKind.DATA
    of: Thing | None = None
    forwards: frozenset[Forward] = frozenset()
    scaler: Thing | None = None
    detached: bool = False
    varies: bool = True
    scalar: bool = False
    turned: bool = False
    picked: Condition | None = None
    power: float = 0.0
    given: frozenset[Forward] = frozenset()
    factors: frozenset[str] = frozenset()
    batch: tuple[Any, ...] | None = None

    def part(self, key: Any) -> Tensor:
        """An item of it."""
        return self if self.batch is None else replace(self, batch=(*self.batch, key))


@dataclass(frozen=True, slots=True, eq=False)
class Forward(Interned):
    """A forward of a model, or a call of one of torch's functions for layers, and where it comes from."""

    node: ast.AST
    context: Context
    model: Thing | Lib


class Kind(enum.Enum):
    """What a thing with identity is."""

    FRAME = "frame"
    MODULE = "module"
    FUNCTION = "function"
    CLASS = "class"
    INSTANCE = "instance"
    LIST = "list"
    DICT = "dict"
    SET = "set"
    ITERATOR = "iterator"
    GENERATOR = "generator"
    PARTIAL = "partial"
    PARSER = "parser"
    NAMESPACE = "namespace"
    LIBRARY = "library"
    """An object of a library's class, whose qualified name is ``made_by``."""


class Obj:
    """A thing with identity, by the place and the calls that made it.

    ``made_by`` is the qualified name of the library's class or function, ``cls`` the class of the script; ``data``
    holds what never changes (a function's node, a parser's options); ``fields`` what may. ``version`` says which of its
    states it is in: what was read of it is still so if it is the same. ``tag`` tells it from others that the same place makes.
    ``is_made_on_the_way``: there are ways through the
    script on which nothing makes it.
    """

    __slots__ = (
        "cls",
        "context",
        "data",
        "is_made_on_the_way",
        "kind",
        "loops",
        "made_by",
        "module",
        "node",
        "own",
        "tag",
        "turn",
        "version",
    )

    def __init__(
        self,
        kind: Kind,
        node: ast.AST | None,
        context: Context | None,
        module: Module | None = None,
        made_by: str = "",
        cls: Obj | None = None,
        data: dict[str, Any] | None = None,
        loops: frozenset[ast.AST] = frozenset(),
    ) -> None:
        self.kind = kind
        self.node = node
        self.context = context
        self.module = module
        self.made_by = made_by
        self.cls = cls
        self.data: dict[str, Any] = {} if data is None else data
        self.own: dict[Any, Value] = {}
        self.tag = ""
        self.version = 0
        self.loops = loops
        self.turn = 0
        self.is_made_on_the_way = False

    @property
    def fields(self) -> dict[Any, Value]:
        """All that the thing holds; that it was looked at is noted for the calls that are being run."""
        if _READS:
            _READS[-1].add(self)
        return self.own

    def get(self, key: Any, default: Any = None) -> Any:
        """What it holds by a name; that this was asked is noted."""
        if _READS:
            _READS[-1].add((self, key))
        return self.own.get(key, default)

    def has(self, key: Any) -> bool:
        """Whether it holds anything by a name."""
        return self.get(key) is not None

    def at(self, key: Any) -> Value:
        """What it holds by a name that it has."""
        found: Value = self.get(key)
        return found

    def value_of(self, key: Any, default: Value) -> Value:
        """What it holds by a name, or else something given."""
        found: Value = self.get(key, default)
        return found

    def __repr__(self) -> str:
        return f"<{show(self)}>"


Reads: TypeAlias = "set[Obj | tuple[Obj, Any]]"
"""Things that were looked at as a whole, or by one name of theirs."""
_READS: list[Reads] = []


def noting_reads(found: Reads) -> None:
    """Note what is looked at, until ``reads_noted``."""
    _READS.append(found)


def reads_noted() -> None:
    """Note no more; what comes back is for the call around to note, if it matters there."""
    _READS.pop()


def note_reads(more: Iterable[Obj | tuple[Obj, Any]]) -> None:
    """Note what a call looked at that has been run, or is not run again."""
    if _READS:
        _READS[-1].update(more)


class Unbound(enum.Enum):
    """A name or field that nothing is bound to on some way here."""

    UNBOUND = "unbound"


UNBOUND = Unbound.UNBOUND


@dataclass(frozen=True, slots=True, eq=False)
class Choice(Interned):
    """One of several values, each under a condition."""

    options: tuple[tuple[Condition, Value], ...]


Value: TypeAlias = Const | Expr | Tup | Lib | Member | Bound | Super | Lazy | Tensor | Obj | Choice | Unbound
Thing: TypeAlias = Obj | Expr
"""What can be a model or an optimizer: an object, or what an unread call gives."""

NONE = Const(None)
TRUE_VALUE = Const(True)  # noqa: FBT003 - the value itself
FALSE_VALUE = Const(False)  # noqa: FBT003


def each(value: Value) -> Iterator[Value]:
    """The values that a value may be, without nothing."""
    if isinstance(value, Choice):
        for _, option in value.options:
            yield from each(option)
    elif value is not UNBOUND:
        yield value


def imported(value: Value) -> Value:
    """What a name that may be imported holds, as far as its module has run."""
    seen = {value}
    while isinstance(value, Lazy):
        value = value.module.own.get(value.name, UNBOUND)
        if value in seen:
            return UNBOUND
        seen.add(value)
    return value


def may_vary(value: Value) -> bool:
    """Whether each rank may have its own of a value."""
    pending, seen = [value], set[Value]()  # parts are shared: a tree of them may be exponentially large
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        match one:
            case Expr() | Tensor():
                if one.varies:
                    return True
            case Tup():
                pending += one.items
            case Choice():
                if any(condition.varies for condition, _ in one.options):
                    return True
                pending += (option for _, option in one.options)
            case Member():
                pending.append(one.of)
            case Obj():
                if one.data.get("varies"):
                    return True
    return False


def option_of(of: Obj, name: str) -> Expr:
    """What the command line says of an option: what differs by rank where a launcher says it, or the default does."""
    parser = of.data.get("parser")
    option = parser.data.get("options", {}).get(name, {}) if isinstance(parser, Obj) else {}
    told = any(str(flag).lstrip("-").replace("-", "_") == "local_rank" for flag in option.get("flags", ()))
    return Expr("arg", name, *of.data.get("path", ()), varies=told or may_vary(option.get("default", NONE)))


def loops_of(values: Iterable[Value]) -> frozenset[ast.AST]:
    """The loops in which any of some values may change from turn to turn."""
    found: frozenset[ast.AST] = frozenset()
    for value in values:
        for one in each(value):
            if isinstance(one, Expr):
                found |= one.loops
    return found


def reached_from(values: Iterable[Value]) -> set[Obj]:
    """The things that values lead to."""
    found: set[Obj] = set()
    pending: list[Value] = list(values)
    seen = set[Value]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        match value:
            case Obj() as one:
                found.add(one)
                pending.extend(one.own.values())
                if one.cls is not None:
                    pending.append(one.cls)
                frame = one.data.get("frame")
                if frame is not None:
                    pending.append(frame.obj)
            case Choice(options=options):
                pending.extend(option for _, option in options)
            case Tup(items=items):
                pending.extend(items)
            case Expr(things=things):
                pending.extend(things)
            case Bound(function=function, instance=instance):
                pending += [function, instance]
            case Member(of=of) | Super(instance=of) | Tensor(of=Obj() as of):
                pending.append(of)
    return found


def tensors_in(value: Value, seen: frozenset[Obj] = frozenset()) -> frozenset[Tensor]:
    """Every tensor in a value."""
    match value:
        case Tensor():
            return frozenset((value,))
        case Tup():
            return frozenset().union(*(tensors_in(item, seen) for item in value.items))
        case Choice():
            return frozenset().union(*(tensors_in(option, seen) for _, option in value.options))
        case Obj() if (
            value.kind in {Kind.LIST, Kind.DICT, Kind.SET, Kind.INSTANCE, Kind.ITERATOR} and value not in seen
        ):
            more = seen | {value}
            return frozenset().union(*(tensors_in(item, more) for item in value.fields.values()))
        case Expr():
            return frozenset(arg for arg in value.args if isinstance(arg, Tensor))
    return frozenset()


def forwards_in(value: Value) -> frozenset[Forward]:
    """The forwards that anything in a value comes from."""
    return frozenset().union(*(tensor.forwards for tensor in tensors_in(value)))


def joined_tensor(tensors: Iterable[Tensor]) -> Tensor:
    """The tensor that arithmetic makes of some tensors."""
    found = list(tensors)
    detached = bool(found) and all(tensor.detached for tensor in found)
    made = Tensor(varies=False, scalar=bool(found) and all(tensor.scalar for tensor in found), detached=detached)
    for tensor in found:
        made = replace(
            made,
            forwards=made.forwards if tensor.detached and not detached else made.forwards | tensor.forwards,
            factors=made.factors | tensor.factors,
            scaler=made.scaler or tensor.scaler,
            varies=made.varies or tensor.varies,
            turned=made.turned or tensor.turned,
        )
    return made


def show(value: object) -> str:
    """A value as people read it in a tree of events."""
    match value:
        case Const():
            return repr(value.value)
        case Expr(op="arg"):
            return f"args.{value.args[0]}"
        case Expr(op="env"):
            return f"env.{value.args[0]}"
        case Expr(op="rank" | "local_rank" | "world_size" | "device_count"):
            return value.op
        case Expr(op="unknown"):
            return f"?{getattr(value.args[0], 'lineno', '')}"
        case Expr(op="counter"):
            return f"{value.args[1]}~"
        case Expr(op="field"):
            return f"{show(value.args[0])}.{value.args[1]}"
        case Expr() if len(value.args) == 2 and not value.op.isalpha():
            return f"({show(value.args[0])} {value.op} {show(value.args[1])})"
        case Expr():
            return f"{value.op}({', '.join(show(arg) for arg in value.args)})"
        case Tup():
            return f"({', '.join(map(show, value.items))})"
        case Lib():
            return value.name
        case Member():
            return f"{show(value.of)}.{value.name}"
        case Bound():
            return f"{show(value.instance)}.{value.function.data['name']}"
        case Lazy():
            return f"{value.module.data['name']}.{value.name}"
        case Tensor():
            parts = [value.kind.value]
            if value.of is not None:
                parts.append(f"of {show(value.of)}")
            if value.forwards:
                parts.append("from " + "+".join(sorted({str(getattr(f.node, "lineno", 0)) for f in value.forwards})))
            if value.scaler is not None:
                parts.append("scaled")
            return f"tensor[{' '.join(parts)}]"
        case Choice():
            return " | ".join(f"{show(option)} if {condition}" for condition, option in value.options)
        case Obj():
            name = value.made_by or (value.cls.data["name"] if value.cls is not None else value.data.get("name", ""))
            return f"{name or value.kind.value}@{getattr(value.node, 'lineno', 0)}"
        case ast.AST():
            return f":{getattr(value, 'lineno', 0)}"
    return str(value)


def owner(thing: Value) -> Value:
    """The whole model that a part of it belongs to."""
    while isinstance(thing, Expr) and thing.op in {"part", "field"} and isinstance(thing.args[0], Obj | Expr):
        thing = thing.args[0]
    return thing
